import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { command } from "../../e2e/support/command.ts";
import { openDoor } from "../../e2e/support/grpc-door.ts";
import { HoldfastError, SILENT_LOG } from "../base/index.ts";
import { startServer, type RunningServer } from "../server/index.ts";
import { conformanceHarnesses, CONTRACT_CASES } from "../testing/conformance/index.ts";
import { resultLines } from "./conformance-report.ts";

/** `holdfast conformance` as a process, against a server of this project's and against others. */

let server: RunningServer;
beforeAll(async () => {
  const config = { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" }, token: "sesame" } as const;
  server = await startServer(config, { harnesses: conformanceHarnesses(), log: SILENT_LOG });
});
afterAll(() => server.shutdown({ graceMs: 0 }));

const ask = (...args: string[]) => command(["conformance", ...args, "--server", server.url], { env: { HOLDFAST_TOKEN: "sesame" } });

describe("holdfast conformance", () => {
  it("checks a server by its address, names what it skips and why, and exits with 0", async () => {
    const { exitCode, stdout, stderr } = await ask();
    const lines = stdout.trimEnd().split("\n");
    expect(stderr).toBe("");
    expect(lines.filter((line) => line.endsWith("  FAILED"))).toEqual([]);
    expect(exitCode).toBe(0);
    const skipped = CONTRACT_CASES.filter(({ needs }) => needs.length > 0).length;
    expect(lines.at(-1)).toBe(`${CONTRACT_CASES.length - skipped} passed, 0 failed, ${skipped} skipped`);
    expect(lines).toContainEqual(
      expect.stringMatching(/^exec\/deadline +skipped: needs a harness whose turn goes on until it is cancelled$/),
    );
  });

  it("runs every case where it is told of the harnesses, and a part where it is asked for one", async () => {
    const flags = ["--waiting-harness", "waiting", "--failing-harness", "failing", "--flaky-harness", "flaky"];
    const { exitCode, stdout } = await ask("--harness", "plain", ...flags, "--only", "cancel", "--only", "exec/order", "--json");
    const results = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect([exitCode, results.at(-1)]).toEqual([0, { summary: { passed: 5, failed: 0, skipped: 0 } }]);
    expect(results[0]).toMatchObject({ id: "exec/order", outcome: "passed", promise: expect.any(String) as string });
  });

  it("exits with 1 when a promise is broken, and says which and how", async () => {
    const { address } = await openDoor({
      sessions: {
        listSessions: async () => ({ $typeName: "agentsessions.v1.ListSessionsResponse", sessions: [], nextPageToken: "" }),
        getSession: async () => {
          throw new HoldfastError("internal", "it broke");
        },
      },
    });
    const { exitCode, stdout } = await command(["conformance", "--server", address, "--only", "session/unknown-uid"]);
    expect([exitCode, stdout.split("\n").slice(1)]).toEqual([
      1,
      [
        "    promised: Any other unknown uid is plain NOT_FOUND.",
        "    GetSession of an unknown session: expected NOT_FOUND, got INTERNAL (it broke)",
        "0 passed, 1 failed, 0 skipped",
        "",
      ],
    ]);
  });

  it("exits with 8 when every case was skipped, and with the error where the server cannot be asked at all", async () => {
    expect((await ask("--only", "exec/deadline")).exitCode).toBe(8);
    expect((await ask("--only", "exce")).exitCode).toBe(2);
    expect((await command(["conformance", "--server", server.url])).exitCode).toBe(6);
    const stranger = createServer((_, response) => response.end("hello"));
    await new Promise<void>((resolve) => stranger.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void stranger.close());
    const { port } = stranger.address() as AddressInfo;
    expect(await command(["conformance", "--server", `127.0.0.1:${port}`])).toMatchObject({ stdout: "", exitCode: 5 });
  });
});

describe("a result on the screen", () => {
  it("is a line; one that failed says what was promised and what was found, and cannot steer the terminal", () => {
    const of = { id: "fork/head", promise: "Fork with at_seq 0 forks at the head.", durationMs: 3 };
    expect(resultLines({ ...of, outcome: "passed" }).map(({ text }) => text)).toEqual([expect.stringMatching(/^fork\/head +ok$/)]);
    expect(resultLines({ ...of, outcome: "failed", reason: "found \u001b[2J\nmore" }).map(({ text }) => text.trimEnd())).toEqual([
      expect.stringMatching(/^fork\/head +FAILED$/),
      "    promised: Fork with at_seq 0 forks at the head.",
      "    found \\u001b[2J\n    more",
    ]);
  });
});
