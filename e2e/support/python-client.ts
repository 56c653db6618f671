/** The Python client of `agent_client.py`, played from a test: its streams, what they say and what they hear. */

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PYTHON = join(ROOT, "sdks/python/.venv/bin/python");
const PROGRAM = join(ROOT, "e2e/support/agent_client.py");

/** A message's value, in the JSON of the proto. */
export type Value = Readonly<Record<string, unknown>>;

/** A message that was heard. */
export interface Heard {
  readonly kind: string;
  readonly value: Value;
  /** The cursor that came with it. */
  readonly seq: number | undefined;
}

/** How a call ended. */
export interface CallEnd {
  readonly code: string;
  readonly details: string;
}

interface Line {
  readonly stream?: string;
  readonly ready?: true;
  readonly headers?: Readonly<Record<string, string>>;
  readonly message?: Readonly<Record<string, Value>>;
  readonly seq?: number | null;
  readonly end?: CallEnd;
}

/** How long a test waits for a message; what a turn takes is far less, on a busy machine too. */
const PATIENCE_MS = 60_000;

/** One call. Everything that is heard is kept. */
export class PythonStream {
  readonly heard: Heard[] = [];
  headers: Readonly<Record<string, string>> = {};
  end: CallEnd | undefined;
  readonly #play: (command: object) => void;
  #read = 0;
  #wake = Promise.withResolvers<void>();

  constructor(play: (command: object) => void) {
    this.#play = play;
  }

  /** The session that the stream has. */
  get session(): string {
    const started = this.heard.findLast(({ kind }) => kind === "sessionStarted");
    if (started === undefined) throw new Error(`the stream has no session: ${this.story().join(", ")}`);
    return String(started.value["sessionId"]);
  }

  /** Sends a SessionRequest, in the JSON of the proto. */
  say(request: Value): void {
    this.#play({ say: request });
  }

  /** Sends nothing more. */
  finish(): void {
    this.#play({ finish: true });
  }

  cut(): void {
    this.#play({ cut: true });
  }

  /** The next message of a kind, and with this value; what comes before it is passed over. Throws where it does not come. */
  async next(kind: string, like: Value = {}): Promise<Value> {
    return this.#awaited(`without ${kind}`, () => {
      const from = this.#read;
      const at = this.heard.findIndex((heard, index) => index >= from && isLike(heard, kind, like));
      this.#read = at < 0 ? this.heard.length : at + 1;
      return this.heard[at]?.value;
    });
  }

  /** The first message of a kind, and with this value, whenever it came; `next` goes on from where it was. */
  async first(kind: string, like: Value = {}): Promise<Value> {
    return this.#awaited(`without ${kind}`, () => this.heard.find((heard) => isLike(heard, kind, like))?.value);
  }

  /** How the call ended. Throws where it does not. */
  async ended(): Promise<CallEnd> {
    return this.#awaited("and goes on", () => this.end);
  }

  all(kind: string): Value[] {
    return this.heard.flatMap((each) => (each.kind === kind ? [each.value] : []));
  }

  /** What was heard in short words; neighbouring deltas of one message as one, and updates of activity and presence apart. */
  story(): string[] {
    const words: string[] = [];
    let last = "";
    for (const { kind, value } of this.heard) {
      if (kind === "activityUpdate" || kind === "presenceHint" || kind === "keepalive" || kind === "") continue;
      const delta =
        kind === "textDelta" || kind === "thinkingDelta"
          ? `${kind === "textDelta" ? "text" : "thinking"} ${String(value["messageId"])}`
          : "";
      if (delta === "") words.push(wordsOf(kind, value));
      else if (delta === last) words.push(`${words.pop() ?? ""}${String(value["content"])}`);
      else words.push(`${delta}: ${String(value["content"])}`);
      last = delta;
    }
    return words;
  }

  async #awaited<Found>(otherwise: string, look: () => Found | undefined): Promise<Found> {
    const deadline = Promise.withResolvers<"over">();
    const patience = setTimeout(() => deadline.resolve("over"), PATIENCE_MS);
    try {
      for (;;) {
        const found = look();
        if (found !== undefined) return found;
        const isOver = this.end !== undefined || (await Promise.race([this.#wake.promise, deadline.promise])) === "over";
        if (isOver)
          throw new Error(`the call has said ${otherwise}: ${this.story().join(", ")}; ${JSON.stringify(this.end ?? "it is open")}`);
      }
    } finally {
      clearTimeout(patience);
    }
  }

  hear({ headers, message, seq, end }: Line): void {
    if (headers !== undefined) this.headers = headers;
    if (message !== undefined) {
      const [kind = "", value = {}] = Object.entries(message)[0] ?? [];
      this.heard.push({ kind, value, seq: seq ?? undefined });
    }
    if (end !== undefined) this.end = end;
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }
}

function isLike({ kind: heard, value }: Heard, kind: string, like: Value): boolean {
  return heard === kind && Object.entries(like).every(([key, wanted]) => value[key] === wanted);
}

function wordsOf(kind: string, value: Value): string {
  switch (kind) {
    case "sessionStarted":
      return "started";
    case "toolRequest":
      return `request ${String(value["toolName"])} ${JSON.stringify(value["parameters"] ?? {})}`;
    case "turnComplete":
      return `complete ${String(value["messageId"])} ${String(value["stopReason"])}`;
    case "error":
      return `error ${String(value["code"])}`;
    case "contextCompacted":
      return `compacted ${String(value["level"])}`;
    default:
      return kind;
  }
}

/** The client's process. */
export class PythonClient {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #streams = new Map<string, PythonStream>();
  readonly #ready = Promise.withResolvers<void>();
  #errors = "";

  private constructor() {
    if (!existsSync(PYTHON)) throw new Error("the Python SDK is not installed: run npm test -- --only python");
    this.#child = spawn(PYTHON, [PROGRAM, join(ROOT, "proto")]);
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => (this.#errors += text));
    createInterface(this.#child.stdout).on("line", (line) => this.#hear(JSON.parse(line) as Line));
    this.#child.on("close", () => {
      this.#ready.reject(new Error(`the Python client ended: ${this.#errors}`));
      for (const stream of this.#streams.values())
        if (stream.end === undefined) stream.hear({ end: { code: "GONE", details: this.#errors } });
    });
  }

  /** Starts one, and waits until it has made its code. */
  static async start(): Promise<PythonClient> {
    const client = new PythonClient();
    await client.#ready.promise;
    return client;
  }

  /** What Python complained about. */
  get errors(): string {
    return this.#errors;
  }

  /** Opens a conversation. */
  open({ address }: { readonly address: string }, metadata: Readonly<Record<string, string>> = {}): PythonStream {
    return this.#call({ at: address, open: metadata });
  }

  /** Watches the team of a task. */
  watch({ address }: { readonly address: string }, task: string): PythonStream {
    return this.#call({ at: address, watch: task });
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #call(command: object): PythonStream {
    const name = `stream-${this.#streams.size + 1}`;
    const play = (more: object): void => void this.#child.stdin.write(`${JSON.stringify({ stream: name, ...more })}\n`);
    const stream = new PythonStream(play);
    this.#streams.set(name, stream);
    play(command);
    return stream;
  }

  #hear(line: Line): void {
    if (line.ready === true) this.#ready.resolve();
    else this.#streams.get(line.stream ?? "")?.hear(line);
  }
}
