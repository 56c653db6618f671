import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command, start } from "../../e2e/support/command.ts";
import { SILENT_LOG } from "../base/ports.ts";
import { createClient, type Client } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { startServer, type RunningServer } from "../server/index.ts";
import { testHarness, type HarnessRun } from "../testing/index.ts";

/** Suspend, resume, fork and tree through real processes of the command against a real server. */

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

const ask = (...args: string[]) => command([...args, "--server", server.url]);
const uidsIn = (text: string): string[] => [...text.matchAll(/session (\S+)/g)].map((match) => match[1] ?? "");
const jsonLines = (text: string): Record<string, unknown>[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

async function echoed(): Promise<string> {
  const turn = client.sessions.exec({ inputs: "hello" });
  await turn.finish();
  return turn.sessionUid!;
}

/** A session of `steered` whose turn stopped after its first output. */
async function interrupted(): Promise<string> {
  steered = async (_, sink) => {
    await sink.output("before");
    throw new Error("crash");
  };
  const { metadata } = await client.sessions.create({ harness: "steered" });
  await client
    .session(metadata!.uid)
    .exec()
    .finish()
    .catch(() => undefined);
  return metadata!.uid;
}

describe("holdfast suspend", () => {
  it("puts a session away; resume brings it back and says when there is nothing more to do", async () => {
    const uid = await echoed();
    const away = `session ${uid}  suspended  completed  last seq 7\n`;
    expect([(await ask("suspend", uid)).stdout, (await ask("suspend", uid)).stdout]).toEqual([away, away]);
    const resumed = await ask("resume", uid);
    expect([resumed.exitCode, resumed.stdout]).toEqual([0, `session ${uid}\n    8  LIFECYCLE         RESUME\n`]);
    const again = await ask("resume", uid);
    expect(again).toEqual({ exitCode: 0, stdout: `session ${uid}\n`, stderr: "there was nothing to resume\n" });
    expect((await ask("suspend", "nobody")).exitCode).toBe(3);
  });

  it("is refused while a turn runs", async () => {
    const goOn = Promise.withResolvers<void>();
    steered = () => goOn.promise;
    const { metadata } = await client.sessions.create({ harness: "steered" });
    const turn = client.session(metadata!.uid).exec().finish();
    await expect.poll(async () => (await client.sessions.get(metadata!.uid)).execState).toBe(2);
    const refused = await ask("suspend", metadata!.uid);
    expect([refused.exitCode, refused.stderr]).toEqual([4, expect.stringContaining("a turn of it is running")]);
    goOn.resolve();
    await turn;
  });
});

describe("holdfast resume", () => {
  it("follows the turn as it goes on, and exits as its end says", async () => {
    const uid = await interrupted();
    steered = async (_, sink) => {
      await sink.output("before");
      await sink.output("after");
    };
    const resumed = await ask("resume", uid);
    expect([resumed.exitCode, resumed.stderr]).toEqual([0, ""]);
    expect(resumed.stdout).toBe(`session ${uid}\n    4  OUTPUT            after\n    5  END               COMPLETED\n`);
    const other = await interrupted();
    steered = async (_, sink) => {
      await sink.output("before");
      await sink.output("after");
    };
    const lines = jsonLines((await ask("resume", other, "--json")).stdout);
    expect(lines).toMatchObject([{ session: { metadata: { uid: other } } }, { record: { seq: "4" } }, { record: { seq: "5" } }]);
  });

  it("says why a turn stopped again, and what may not go on at all", async () => {
    const uid = await interrupted();
    const again = await ask("resume", uid);
    expect([again.exitCode, again.stdout]).toEqual([1, expect.stringContaining("ERROR")]);
    steered = async (_, sink) => sink.output("something else");
    const diverged = await ask("resume", uid);
    expect([diverged.exitCode, diverged.stderr]).toEqual([4, expect.stringContaining("diverged from its record at seq 2")]);
  });

  it("detaches at Ctrl-C, or at once when that is asked for; the turn goes on", async () => {
    const goOn = Promise.withResolvers<void>();
    const slow: HarnessRun = async (_, sink) => {
      await sink.output("before");
      await sink.output("begun");
      await goOn.promise;
      await sink.output("done");
    };
    const [left, detached] = [await interrupted(), await interrupted()];
    steered = slow;
    const running = start(["resume", left, "--server", server.url]);
    await running.said("OUTPUT            begun\n");
    running.child.kill("SIGINT");
    expect(await running.result).toMatchObject({
      exitCode: 130,
      stderr: `detached; the turn goes on. pick it up with: holdfast tail ${left} --from 5 --server ${server.url}\n`,
    });
    const leaving = await ask("resume", detached, "--detach");
    expect([leaving.exitCode, leaving.stdout]).toEqual([0, expect.stringMatching(/ {2}running {2}last seq [34]\n$/)]);
    expect(leaving.stderr).toContain("the turn goes on");
    goOn.resolve();
    for (const uid of [left, detached]) {
      const rest = await ask("tail", uid, "--from", "5", "--until", "idle");
      expect(rest.stdout).toBe("    5  OUTPUT            done\n    6  END               COMPLETED\n");
    }
    expect((await ask("resume", left, "--detach")).stdout).toContain("  completed  last seq 6\n");
  });
});

describe("holdfast fork and tree", () => {
  it("make children and draw the whole family from any of them, deleted ones too", async () => {
    const uid = await echoed();
    const [left, right] = uidsIn((await ask("fork", uid, "--at", "4", "--name", "left", "--name", "right", "--label", "a=b")).stdout);
    const [deep] = uidsIn((await ask("fork", left!)).stdout);
    const head = await ask("fork", uid, "--json");
    expect(jsonLines(head.stdout)).toMatchObject([{ parent_uid: uid, fork_seq: "6" }]);
    const [{ metadata }] = jsonLines(head.stdout) as [{ metadata: { uid: string } }];
    expect((await client.sessions.get(left!)).labels).toEqual({ a: "b" });
    await ask("delete", left!);
    const drawn = `${uid}  completed  seq 6
├─ at 4  ${left}  deleted  seq 8  left
│  └─ at 5  ${deep}  awaiting  seq 6
├─ at 4  ${right}  awaiting  seq 5  right
└─ at 6  ${metadata.uid}  completed  seq 7
`;
    const swapped = (text: string): string[] => text.trimEnd().split("\n").toSorted();
    for (const member of [uid, left!, deep!, metadata.uid]) {
      const tree = await ask("tree", member);
      expect([tree.exitCode, swapped(tree.stdout.replaceAll(/[├│└─]/g, ""))]).toEqual([0, swapped(drawn.replaceAll(/[├│└─]/g, ""))]);
    }
    const [family] = jsonLines((await ask("tree", deep!, "--json")).stdout);
    expect(family).toMatchObject({ rows: [{ uid }, {}, {}, {}, {}] });
    const cut = await ask("tree", uid, "--limit", "2");
    expect([cut.stdout.split("\n").length, cut.stderr]).toEqual([3, "there are more: --limit 20 shows up to so many\n"]);
  });

  it("say what is wrong with a fork", async () => {
    const uid = await echoed();
    expect(await ask("fork", uid, "--at", "99")).toMatchObject({
      exitCode: 4,
      stdout: "",
      stderr: expect.stringMatching(/^holdfast: at_seq: /),
    });
    expect((await ask("fork", uid, "--count", "0")).exitCode).toBe(2);
    expect((await ask("fork", "nobody")).exitCode).toBe(3);
    expect((await ask("tree", "nobody")).exitCode).toBe(3);
  });
});
