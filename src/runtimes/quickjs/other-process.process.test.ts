/** What was captured in one process goes on in another, whichever way the first one ended. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";

const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);

/**
 * Reads orders from standard input, one JSON a line, and answers each with one: `create`, `turn`, `checkpoint`, `suspend`, `restore`, `fork`.
 * It is killed when it has told enough.
 */
const PROGRAM = `
  import { createInterface } from "node:readline";
  import { fileURLToPath } from "node:url";
  import { cryptoRandom, nodeDigest, systemClock } from ${url("../../node/index.ts")};
  import { openFileBlobStore } from ${url("../../stores/blobs/index.ts")};
  import { textMessage } from ${url("../../spi/index.ts")};
  import { createRecordingSink } from ${url("../../testing/recording-sink.ts")};
  import { bundleHarness, createQuickJsRuntime } from ${url("./index.ts")};

  const [folder, harness, exportName] = process.argv.slice(1);
  const script = await bundleHarness({ file: fileURLToPath(new URL(harness, ${url("../../harnesses/index.ts")})), exportName });
  const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
  const runtime = await createQuickJsRuntime({ script, ports, workers: 1, blobs: openFileBlobStore({ folder, ...ports }) });
  const living = new Map();
  const options = (session) => ({ sessionUid: session, fence: 1, harness });
  let executions = 0;

  const orders = {
    create: async ({ session }) => void living.set(session, await runtime.create(options(session))),
    restore: async ({ session, snapshot }) => void living.set(session, await runtime.restore(snapshot, options(session))),
    fork: async ({ session, snapshot }) => void living.set(session, await runtime.fork(snapshot, options(session))),
    checkpoint: ({ session }) => runtime.checkpoint(living.get(session)),
    suspend: ({ session }) => runtime.snapshot(living.get(session), "external"),
    turn: async ({ session, input = "" }) => {
      const sink = createRecordingSink();
      const history = { lastSeq: 0, async *read() {} };
      const start = { executionId: "e" + ++executions, sessionUid: session, config: new Uint8Array(), history, inputs: [textMessage("user", input)], identity: {}, resumeFromSeq: 0n, model: "" };
      await (await runtime.attach(living.get(session))).run(start, sink, { signal: new AbortController().signal });
      return sink.effects.map(({ text }) => text).join();
    },
  };
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    process.stdout.write(JSON.stringify({ answer: await orders[order.what](order).catch((error) => "failed: " + error.message) }) + "\\n");
  }
`;

class OtherProcess {
  readonly #child;
  #answers = "";

  constructor(folder: string, harness: string, exportName: string) {
    this.#child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM, folder, harness, exportName], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdout.setEncoding("utf8");
  }

  async ask(what: string, order: object = {}): Promise<unknown> {
    this.#child.stdin.write(`${JSON.stringify({ what, ...order })}\n`);
    while (!this.#answers.includes("\n")) {
      const [text] = (await once(this.#child.stdout, "data")) as [string];
      this.#answers += text;
    }
    const end = this.#answers.indexOf("\n");
    const { answer } = JSON.parse(this.#answers.slice(0, end)) as { readonly answer: unknown };
    this.#answers = this.#answers.slice(end + 1);
    return answer;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }
}

let folder: TemporaryFolder;
let processes: OtherProcess[];
beforeEach(() => {
  folder = new TemporaryFolder("disk");
  processes = [];
});
afterEach(async () => {
  await Promise.all(processes.map((other) => other.kill()));
  folder[Symbol.dispose]();
});

function start(harness: string, exportName: string): OtherProcess {
  const other = new OtherProcess(folder.path, harness, exportName);
  processes.push(other);
  return other;
}

describe("a session of another process", () => {
  it("counts on after it was suspended there", async () => {
    const first = start("./counter.ts", "createCounterHarness");
    await first.ask("create", { session: "s" });
    expect([await first.ask("turn", { session: "s" }), await first.ask("turn", { session: "s" })]).toEqual(["1", "2"]);
    const snapshot = await first.ask("suspend", { session: "s" });
    await first.kill();
    const second = start("./counter.ts", "createCounterHarness");
    await second.ask("restore", { session: "s", snapshot });
    expect(await second.ask("turn", { session: "s" })).toBe("3");
    // And from there to a third, through a capture on top of the first one's.
    const next = await second.ask("checkpoint", { session: "s" });
    await second.kill();
    const third = start("./counter.ts", "createCounterHarness");
    await third.ask("restore", { session: "s", snapshot: next });
    expect(await third.ask("turn", { session: "s" })).toBe("4");
    for (let child = 0; child < 8; child++) await third.ask("fork", { session: `child-${child}`, snapshot: next });
    for (let child = 0; child < 8; child++) expect(await third.ask("turn", { session: `child-${child}` })).toBe("4");
  });

  it("goes on from its last checkpoint when that process was killed in the middle of what came after", async () => {
    const first = start("./repl.ts", "createReplHarness");
    await first.ask("create", { session: "s" });
    await first.ask("turn", {
      session: "s",
      input: "let a = 1; const add = (n) => (a += n); class Kept { #x = a; get x() { return this.#x } } const kept = new Kept()",
    });
    expect(await first.ask("turn", { session: "s", input: "add(41)" })).toBe("42");
    const snapshot = await first.ask("checkpoint", { session: "s" });
    expect(await first.ask("turn", { session: "s", input: "add(1000)" })).toBe("1042");
    await first.kill();
    const second = start("./repl.ts", "createReplHarness");
    await second.ask("restore", { session: "s", snapshot });
    await second.ask("fork", { session: "child", snapshot });
    expect(await second.ask("turn", { session: "s", input: "add(1) + kept.x" })).toBe("44");
    expect(await second.ask("turn", { session: "child", input: "add(2) + kept.x" })).toBe("45");
    expect(await second.ask("turn", { session: "s", input: "a" })).toBe("43");
  });

  it("is not restored into another harness", async () => {
    const first = start("./counter.ts", "createCounterHarness");
    await first.ask("create", { session: "s" });
    const snapshot = await first.ask("suspend", { session: "s" });
    const second = start("./repl.ts", "createReplHarness");
    expect(await second.ask("restore", { session: "s", snapshot })).toMatch(/^failed: snapshot: it was taken with another harness script/);
  });
});
