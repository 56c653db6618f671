/**
 * A server in a child process: one JSON message a line over its standard streams.
 *
 * The SDK has such a transport too. This one has a process group, so that what `npx` or a shell starts ends with it; sees the end of the
 * process and not only that of its streams, which a grandchild may hold open; and reads large messages without copying them again and again.
 *
 * Invariants: a line that is no JSON is passed over; a line longer than the limit ends the server; the end is told once.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { setImmediate } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { Clock } from "../../base/index.ts";
import { MESSAGE_BYTES_MAX, type StdioReach } from "./options.ts";

/** How long a server may take to end by itself once its input has ended, and then again once it was told to. */
const END_GRACE_MS = 1_000;
/** What it wrote just before its end is still read for so long. */
const LAST_WORDS_MS = 200;

export interface ChildTransportOptions extends StdioReach {
  readonly clock: Clock;
  /** Told what the server writes to standard error. */
  readonly onStderr: (chunk: Buffer) => void;
}

/** The variables of the host that a server gets: what it takes to find and run programs, and nothing that is a secret. */
const PASSED_ON = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"] as const;

export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #options: ChildTransportOptions;
  readonly #closed = Promise.withResolvers<void>();
  #child: ChildProcess | undefined;
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #hasExited = false;
  #isClosed = false;

  constructor(options: ChildTransportOptions) {
    this.#options = options;
  }

  start(): Promise<void> {
    const { command, cwd, env, onStderr } = this.#options;
    const [file, ...args] = command;
    return new Promise((resolve, reject) => {
      const child = spawn(file, args, { cwd, env: { ...passedOn(), ...env }, stdio: "pipe", detached: true });
      this.#child = child;
      child.once("spawn", resolve);
      child.once("error", (error) => {
        reject(error);
        this.#end();
      });
      child.once("exit", () => {
        // Its group's number stays taken while a member of the group lives, so this can meet nobody else.
        this.#signalGroup("SIGKILL");
        this.#hasExited = true;
        this.#options.clock.after(LAST_WORDS_MS, () => this.#end());
      });
      child.once("close", () => this.#end());
      child.stdin.on("error", (error) => this.onerror?.(error));
      void this.#read(child.stdout);
      child.stderr.on("error", (error) => this.onerror?.(error));
      child.stderr.on("data", onStderr);
    });
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (this.#isClosed || stdin === null || stdin === undefined) return Promise.reject(new Error("Not connected"));
    return new Promise((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error === null || error === undefined ? resolve() : reject(error)));
    });
  }

  /** Ends its input, then tells it to end, then ends it. */
  async close(): Promise<void> {
    const child = this.#child;
    if (child === undefined || this.#isClosed) return this.#end();
    child.stdin?.end();
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      if (await this.#endsWithin(END_GRACE_MS)) return;
      this.#signalGroup(signal);
    }
    await this.#endsWithin(END_GRACE_MS);
    this.#end();
  }

  async #endsWithin(graceMs: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.after(graceMs, resolve);
    await Promise.race([this.#closed.promise, promise]);
    timer.cancel();
    return this.#isClosed;
  }

  /** Reads no faster than messages are taken. */
  async #read(stdout: AsyncIterable<Buffer>): Promise<void> {
    try {
      for await (const chunk of stdout) await this.#take(chunk);
    } catch (error) {
      if (!this.#isClosed) this.onerror?.(error instanceof Error ? error : new Error("its output cannot be read"));
    }
  }

  async #take(chunk: Buffer): Promise<void> {
    let rest = chunk;
    for (let at = rest.indexOf(0x0a); at >= 0 && !this.#isClosed; at = rest.indexOf(0x0a)) {
      this.#pieces.push(rest.subarray(0, at));
      rest = rest.subarray(at + 1);
      const line = Buffer.concat(this.#pieces).toString("utf8");
      this.#pieces = [];
      this.#pieceBytes = 0;
      await this.#takeLine(line);
    }
    this.#pieces.push(rest);
    this.#pieceBytes += rest.length;
    if (this.#pieceBytes <= MESSAGE_BYTES_MAX) return;
    this.#pieces = [];
    this.#pieceBytes = 0;
    this.onerror?.(new Error(`a message of more than ${MESSAGE_BYTES_MAX} bytes`));
    this.#signalGroup("SIGKILL");
  }

  async #takeLine(line: string): Promise<void> {
    if (line.trim() === "") return;
    try {
      // What is no message of the protocol is sorted out by the SDK.
      const message = JSON.parse(line) as JSONRPCMessage;
      this.onmessage?.(message);
      // A notice is taken a little later by the SDK, and must be before the answer that follows it. A flood so leaves others their turn.
      if (!("id" in message)) await setImmediate();
    } catch {
      this.onerror?.(new Error("a line that is no message"));
    }
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#signalGroup("SIGKILL");
    this.#child?.stdout?.destroy();
    this.#child?.stderr?.destroy();
    this.#closed.resolve();
    this.onclose?.();
  }

  #signalGroup(signal: "SIGTERM" | "SIGKILL"): void {
    const pid = this.#child?.pid;
    if (pid === undefined || this.#hasExited) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // Nobody is left in it.
    }
  }
}

function passedOn(): Record<string, string> {
  return Object.fromEntries(PASSED_ON.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}
