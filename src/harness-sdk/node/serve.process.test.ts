import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLineHarness } from "../../harness-wire/index.ts";
import { dialHarness } from "../../harness-wire/node/index.ts";
import { systemClock as clock } from "../../node/index.ts";
import { outcomeOf, ProbeSink, probeStart } from "../../testing/harness-wire/probe-host.ts";
import { probeHarness } from "../../testing/harness-wire/probe-harness.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { serveHarness } from "./index.ts";

/** Programs that serve a harness at an address, as they are started by hand. */

const PEER = fileURLToPath(new URL("../../testing/harness-wire/probe-peer.ts", import.meta.url));
const never = new AbortController().signal;

/** Starts the program; resolves with it and with where it says that it serves. */
async function started(listen: string) {
  const child = spawn(process.execPath, [PEER], { env: { HOLDFAST_HARNESS_LISTEN: listen }, stdio: ["ignore", "ignore", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  while (!said.includes("served at")) said += String((await once(child.stderr, "data"))[0]);
  return { child, exited: once(child, "exit"), address: /served at (\S+)/.exec(said)?.[1] ?? "" };
}

describe("a program that serves a harness", () => {
  it("listens where its environment says, and ends when it is told to", async () => {
    using folder = new TemporaryFolder();
    for (const listen of ["127.0.0.1:0", `unix://${join(folder.path, "h.sock")}`]) {
      const { child, exited, address } = await started(listen);
      const { line, speaks, descriptor } = await dialHarness(address);
      expect([speaks, descriptor.id]).toEqual(["wire", "probe"]);
      await using remote = createLineHarness({ line, clock });
      await remote.run(probeStart("nothing at all"), new ProbeSink(), { signal: never });
      child.kill("SIGTERM");
      expect(await exited).toEqual([0, null]);
      expect((await remote.closed).message).toContain("closed");
    }
  });

  it("lets its turns end first", async () => {
    const { child, exited, address } = await started("127.0.0.1:0");
    await using remote = createLineHarness({ line: (await dialHarness(address)).line, clock });
    const turn = new AbortController();
    const running = remote.run(probeStart("a wait"), new ProbeSink(), { signal: turn.signal }).catch(outcomeOf);
    await remote.run(probeStart("nothing at all"), new ProbeSink(), { signal: never });
    child.kill("SIGTERM");
    let hasLeft = false;
    void exited.then(() => (hasLeft = true));
    // It still answers.
    await remote.run(probeStart("nothing at all"), new ProbeSink(), { signal: never });
    expect(hasLeft).toBe(false);
    turn.abort(new Error("enough"));
    await running;
    expect(await exited).toEqual([0, null]);
  });

  it("takes over the socket of a program that is gone, and of nobody else", async () => {
    using folder = new TemporaryFolder();
    const path = join(folder.path, "h.sock");
    const { child, exited } = await started(`unix://${path}`);
    await expect(serveHarness(probeHarness(), { listen: `unix://${path}` })).rejects.toMatchObject({ code: "already_exists" });
    child.kill("SIGKILL");
    await exited;
    const served = await serveHarness(probeHarness(), { listen: `unix://${path}` });
    await served[Symbol.asyncDispose]();
    writeFileSync(path, "mine");
    await expect(serveHarness(probeHarness(), { listen: `unix://${path}` })).rejects.toMatchObject({ code: "already_exists" });
  });

  it("says what is wrong with where it is to listen", async () => {
    await expect(serveHarness(probeHarness(), { listen: "nowhere" })).rejects.toMatchObject({ code: "invalid_argument", field: "listen" });
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const address = taken.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    await expect(serveHarness(probeHarness(), { listen: `127.0.0.1:${port}` })).rejects.toMatchObject({ code: "unavailable" });
    taken.close();
  });
});
