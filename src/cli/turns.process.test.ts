import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command, start, type CommandResult } from "../../e2e/support/command.ts";
import { HoldfastError } from "../base/errors.ts";
import { SILENT_LOG } from "../base/ports.ts";
import { createClient, type Client } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { startServer, type RunningServer } from "../server/index.ts";
import { HarnessFailure } from "../spi/index.ts";
import { testHarness, type HarnessRun } from "../testing/index.ts";

/** Turns through real processes of the command against a real server, whose harness each test steers. */

let server: RunningServer;
let client: Client;
/** What the harness `steered` does in its next turns. */
let steered: HarnessRun = async () => undefined;

beforeAll(async () => {
  const harness = testHarness((begin, sink, options) => steered(begin, sink, options));
  server = await startServer(
    { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" } },
    { harnesses: { steered: harness }, log: SILENT_LOG },
  );
  client = createClient({ transport: createNodeTransport({ address: server.url }) });
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await server.shutdown({ graceMs: 0 });
});

const at = (...args: string[]): string[] => [...args, "--server", server.url];
const uidIn = (text: string): string => /session (\S+)/.exec(text)?.[1] ?? "";
/** The output with the uid taken out, for comparison. */
const withoutUid = ({ stdout }: CommandResult): string => stdout.replaceAll(uidIn(stdout), "UID");
const jsonLines = (text: string): Record<string, unknown>[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("holdfast exec", () => {
  it("prints the session's uid, then each record, and exits with 0", async () => {
    const ran = await command(at("exec", "--input", "hello"));
    expect(withoutUid(ran)).toBe(`session UID
    1  EXECUTION_START   echo 1  1 input
    2  INPUT             hello
    3  MODEL_CALL        echo  sha256 2611c24a…
    4  OUTPUT            echo:hello
    5  USAGE             echo  1 in  1 out
    6  END               COMPLETED
`);
    expect([ran.exitCode, ran.stderr]).toEqual([0, ""]);
  });

  it("runs the next turn of a session, with several inputs, one of them from a pipe", async () => {
    const uid = uidIn((await command(at("exec", "--input", "one"))).stdout);
    const next = await command(at("exec", "--session", uid, "--input", "two", "--input", "-"), { stdin: "from a\npipe\n" });
    expect(next.stdout).toContain("    7  EXECUTION_START   echo 1  2 inputs\n");
    expect(next.stdout).toContain("    8  INPUT             two\n    9  INPUT             from a\n                         pipe\n");
    expect(next.stdout).toMatch(/ {3}13 {2}END {15}COMPLETED\n$/);
  });

  it("prints one ExecUpdate a line with --json, deltas only when asked for", async () => {
    const ran = await command(at("exec", "--input", "hello there", "--json"));
    const [first, ...records] = jsonLines(ran.stdout);
    expect(first).toMatchObject({ session: { harness: "echo", exec_state: "EXEC_PENDING" } });
    expect(records.map((line) => (line["record"] as { seq: string }).seq)).toEqual(["1", "2", "3", "4", "5", "6"]);
    const withDeltas = jsonLines((await command(at("exec", "--input", "hello there", "--json", "--deltas"))).stdout);
    const text = withDeltas.map((line) => (line["delta"] as { chunk?: string } | undefined)?.chunk ?? "").join("");
    expect(text).toBe("echo:hello there");
  });

  it("creates the session as the flags say", async () => {
    const flags = ["--name", "n-1", "--project", "p", "--label", "team=a", "--label", "tier=b", "--model", "echo", "--harness", "steered"];
    const uid = uidIn((await command(at("exec", ...flags))).stdout);
    expect(await client.sessions.get(uid)).toMatchObject({
      metadata: { name: "n-1", project: "p" },
      harness: "steered",
      model: "echo",
      labels: { team: "a", tier: "b" },
    });
  });

  it("hands the config to the harness as it is", async () => {
    const configs: string[] = [];
    steered = async ({ config }) => void configs.push(new TextDecoder().decode(config));
    await command(at("exec", "--harness", "steered", "--config", '{"a": 1}'));
    await command(at("exec", "--harness", "steered", "--config-file", import.meta.filename));
    expect(configs[0]).toBe('{"a": 1}');
    expect(configs[1]).toContain("hands the config to the harness as it is");
  });

  it("exits with 1 when the turn failed, and the last record says why", async () => {
    steered = async () => {
      throw new HarnessFailure(8, "the budget is spent");
    };
    const ran = await command(at("exec", "--harness", "steered"));
    expect([ran.exitCode, ran.stdout.split("\n").at(-2)]).toEqual([1, "    2  END               FAILED  the budget is spent"]);
  });

  it("says of a turn that has stopped how it goes on, and nothing of a server that answered", async () => {
    steered = async () => {
      throw new HoldfastError("unavailable", "harness: it has gone");
    };
    const ran = await command(at("exec", "--harness", "steered"));
    const advice = `let it go on with: holdfast resume ${uidIn(ran.stdout)} --server ${server.url}\n`;
    expect([ran.exitCode, ran.stderr]).toEqual([5, `holdfast: harness: it has gone\n${advice}`]);
    const resumed = await command(at("resume", uidIn(ran.stdout)));
    expect([resumed.exitCode, resumed.stderr]).toEqual([5, "holdfast: harness: it has gone\n"]);
  });

  it("cancels the turn at its deadline", async () => {
    steered = untilCancelled;
    const ran = await command(at("exec", "--harness", "steered", "--deadline", "1s"));
    expect(ran.stdout).toContain("LIFECYCLE         CANCEL  TIMEOUT\n");
    expect([ran.exitCode, ran.stdout.split("\n").at(-2)]).toEqual([1, "    3  END               CANCELED"]);
  });

  it("begins only at the head that was expected", async () => {
    const uid = uidIn((await command(at("exec", "--input", "one"))).stdout);
    const late = await command(at("exec", "--session", uid, "--expected-last-seq", "5", "--input", "two"));
    expect([late.exitCode, late.stderr]).toEqual([
      4,
      "holdfast: session: its last_seq is 6, not the expected one; read the session, then retry\n",
    ]);
    expect((await command(at("exec", "--session", uid, "--expected-last-seq", "6", "--input", "two"))).exitCode).toBe(0);
  });

  it("detaches at Ctrl-C: the turn goes on, and what it says next to type picks it up where it was", async () => {
    const goOn = Promise.withResolvers<void>();
    steered = async (_, sink) => {
      await sink.output("before");
      await goOn.promise;
      await sink.output("after");
    };
    const running = start(at("exec", "--harness", "steered"));
    await running.said("OUTPUT            before\n");
    running.child.kill("SIGINT");
    const left = await running.result;
    const uid = uidIn(left.stdout);
    expect(left.exitCode).toBe(130);
    const advice = `detached; the turn goes on. pick it up with: holdfast tail ${uid} --from 3 --server ${server.url}\n`;
    expect(left.stderr).toBe(advice);
    goOn.resolve();
    const [, ...tail] = advice.trim().split("holdfast ").at(-1)!.split(" ");
    const rest = await command(["tail", ...tail, "--until", "idle"]);
    expect(rest.stdout).toBe("    3  OUTPUT            after\n    4  END               COMPLETED\n");
  });

  it("cancels the turn at Ctrl-C when that was asked for, and shows its END", async () => {
    steered = untilCancelled;
    const running = start(at("exec", "--harness", "steered", "--cancel-on-interrupt"));
    await running.said("EXECUTION_START");
    running.child.kill("SIGINT");
    const ran = await running.result;
    expect([ran.exitCode, ran.stdout.split("\n").at(-2)]).toEqual([130, "    3  END               CANCELED"]);
  });

  it("refuses flags that contradict each other, before anything is done", async () => {
    const refusals: readonly (readonly [string[], string])[] = [
      [["--session", "u", "--name", "n"], "--name: is for a new session; leave it out with --session"],
      [["--input", "-", "--input", "-"], "--input: can read standard input only once"],
      [["--config-file", "/nonexistent"], "--config-file: must name a file that can be read"],
      [["--deltas"], "--deltas: is for --json"],
    ];
    for (const [flags, message] of refusals) {
      const refused = await command(at("exec", ...flags));
      expect([refused.exitCode, refused.stdout]).toEqual([2, ""]);
      expect(refused.stderr).toContain(`holdfast: ${message}`);
    }
  });
});

describe("holdfast tail", () => {
  it("follows a session while turns run, from a cursor, each record once", async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    steered = async (_, sink) => {
      await sink.output("one");
      await gates[0].promise;
      await sink.output("two");
      await gates[1].promise;
    };
    const { metadata } = await client.sessions.create({ harness: "steered" });
    const uid = metadata!.uid;
    const turn = client.session(uid).exec().finish();
    const first = start(at("tail", uid));
    await first.said("OUTPUT            one\n");
    first.child.kill("SIGINT");
    const left = await first.result;
    expect([left.exitCode, left.stderr]).toEqual([130, `go on with: holdfast tail ${uid} --from 3 --server ${server.url}\n`]);
    const second = start(at("tail", uid, "--from", "3"));
    gates[0].resolve();
    await second.said("OUTPUT            two\n");
    gates[1].resolve();
    await turn;
    await second.said("END               COMPLETED\n");
    second.child.kill("SIGINT");
    const all = left.stdout + (await second.result).stdout;
    expect(all.match(/^ +\d+/gm)?.map(Number)).toEqual([1, 2, 3, 4]);
  });

  it("ends by itself at the head, or once no turn runs; as LogRecords with --json", async () => {
    const uid = uidIn((await command(at("exec", "--input", "hello"))).stdout);
    for (const until of ["head", "idle"]) {
      const tailed = await command(at("tail", uid, "--from", "5", "--until", until, "--json"));
      expect([tailed.exitCode, jsonLines(tailed.stdout)]).toMatchObject([0, [{ seq: "5" }, { seq: "6", event: { kind: "EVENT_END" } }]]);
    }
  });
});

const untilCancelled: HarnessRun = (_begin, _sink, { signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true }));
