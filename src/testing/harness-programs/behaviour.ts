/** A harness that does what its turn's first input says, and counts turns without input: what tests of runtimes need of a harness in a process of its own. */

import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { describeHarness, HarnessFailure, Resumability, type EventSink, type Harness, type Start } from "../../spi/index.ts";

type Behaviour = (rest: string, start: Start, sink: EventSink, signal: AbortSignal) => Promise<void>;

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  /** `echo text` says the text. */
  echo: async (rest, _start, sink) => sink.output(rest),
  /** `count` says how many turns this process has had. */
  count: async (_rest, _start, sink) => sink.output(`count ${(turns += 1)}`),
  /** `chat` asks the model once. */
  chat: async (_rest, start, sink) => {
    const { usage } = await sink.model({ model: start.model, messages: start.inputs });
    await sink.usage(usage);
  },
  /** `exit-once <file> <code>` asks the model, then leaves unless the file is there; then it says `done`. */
  "exit-once": async (rest, start, sink) => {
    const [file = "", code = "1"] = rest.split(" ");
    await sink.model({ model: start.model, messages: start.inputs });
    if (!existsSync(file)) {
      writeFileSync(file, "");
      process.exit(Number(code));
    }
    await sink.output("done");
  },
  /** `kill <signal>` ends itself by the signal. */
  kill: async (rest, _start, sink) => {
    await sink.output("before");
    process.kill(process.pid, rest);
    await new Promise(() => undefined);
  },
  /** `fail` fails for good. */
  fail: async () => {
    throw new HarnessFailure(9, "it cannot be done");
  },
  /** `throw <words>` writes its words to standard error, then throws others. */
  throw: async (rest) => {
    process.stderr.write(`${rest}\n`);
    throw new Error("boom");
  },
  /** `spin` never gives the processor back. */
  spin: async (_rest, _start, sink) => {
    await sink.output("spinning");
    await new Promise((resolve) => setTimeout(resolve, 20));
    for (;;);
  },
  /** `ignore` says `waiting` and never ends, whatever it is told. */
  ignore: async (_rest, _start, sink) => {
    await sink.output("waiting");
    await new Promise(() => setInterval(() => undefined, 60_000));
  },
  /** `wait` says `waiting` and ends when it is cancelled. */
  wait: async (_rest, _start, sink, signal) => {
    await sink.output("waiting");
    await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
  },
  /** `flood <mebibytes>` writes so much to standard error, then a last line. */
  flood: async (rest, _start, sink) => {
    const line = `${"x".repeat(1023)}\n`;
    for (let written = 0; written < Number(rest) * 1024; written++) {
      if (!process.stderr.write(line)) await new Promise((resolve) => process.stderr.once("drain", resolve));
    }
    await new Promise((resolve) => process.stderr.write("the last line\n", resolve));
    await sink.output("flooded");
  },
  /** `eat <mebibytes>` takes so much memory, and says how much it has. */
  eat: async (rest, _start, sink) => {
    const eaten: Buffer[] = [];
    while (eaten.length < Number(rest)) eaten.push(Buffer.alloc(1024 * 1024, 1));
    await sink.output(`ate ${eaten.length}`);
  },
  /** `fill <file> <mebibytes>` writes so much, and says what became of it. */
  fill: async (rest, _start, sink) => {
    const [file = "", mebibytes = ""] = rest.split(" ");
    try {
      writeFileSync(file, Buffer.alloc(Number(mebibytes) * 1024 * 1024, 1));
      await sink.output("filled");
    } catch (error) {
      await sink.output(error instanceof Error && "code" in error ? String(error.code) : "?");
    }
  },
  /** `read <JSON of a list of files>` says what is in each, or why it cannot be read. */
  read: async (rest, _start, sink) => {
    const files = JSON.parse(rest) as string[];
    await sink.output(JSON.stringify(files.map((file) => textOf(file))));
  },
  /** `offspring` starts a process and says its id. */
  offspring: async (_rest, _start, sink) => {
    const child = spawn("/bin/sleep", ["600"], { stdio: "ignore" });
    await sink.output(String(child.pid));
  },
  /** `environment` says the names of its environment, and where it works. */
  environment: async (_rest, _start, sink) => {
    await sink.output(JSON.stringify({ env: Object.keys(process.env).toSorted(), cwd: process.cwd(), argv: process.argv.slice(2) }));
  },
  /** `look <JSON of {port, write, read}>` says what it can reach. */
  look: async (rest, _start, sink) => {
    const { port, write, read } = JSON.parse(rest) as { port: number; write: string[]; read: string[] };
    const written = write.filter((path) => succeeds(() => writeFileSync(path, "written")));
    const readable = read.filter((path) => succeeds(() => readFileSync(path)));
    const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).length;
    await sink.output(JSON.stringify({ reached: await reaches(port), written, readable, processes }));
  },
};

let turns = 0;

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "?";
  }
}

function succeeds(attempt: () => unknown): boolean {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
}

function reaches(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
  });
}

/** The harness. `version` is what it says of itself. */
export function behavingHarness(version = "1"): Harness {
  const descriptor = describeHarness({
    id: "behaving",
    version,
    capabilities: { resumability: Resumability.STATELESS_REPLAY, forkSafe: true },
  });
  return {
    describe: async () => descriptor,
    run: async (start, sink, { signal }) => {
      if (start.inputs.length === 0) return sink.output(String((turns += 1)));
      const part = start.inputs[0]?.parts[0]?.part;
      const text = part?.case === "text" ? part.value.text : "";
      const [word = "", ...rest] = text.split(" ");
      const behaviour = BEHAVIOURS[word];
      if (behaviour === undefined) throw new HarnessFailure(3, "it does not know the word");
      await behaviour(rest.join(" "), start, sink, signal);
    },
  };
}
