/** The `holdfast` command on a terminal of its own, as a person has it: keys go in, a screen comes out. */

import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { cleanEnvironment } from "./command.ts";
import { VirtualScreen } from "./virtual-screen.ts";

const MAIN = join(import.meta.dirname, "..", "..", "src", "cli", "main.ts");
const BRIDGE = join(import.meta.dirname, "terminal.py");
/** How long something may take to appear. */
const SEE_TIMEOUT_MS = 20_000;

export interface TerminalOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  readonly rows?: number;
}

export class Terminal {
  readonly screen: VirtualScreen;
  /** The exit code, once the program has ended. */
  readonly ended: Promise<number>;
  /** All bytes that came, styles included. */
  raw = "";
  readonly #bridge: ChildProcess;
  readonly #pid: Promise<number>;
  readonly #watchers = new Set<() => void>();
  #isOver = false;

  /** Starts the command; it is killed at the end of the test if it is still there. */
  constructor(args: readonly string[], { cwd, env, columns = 80, rows = 40 }: TerminalOptions) {
    this.screen = new VirtualScreen(columns, rows);
    const { NO_COLOR: _, ...environment } = cleanEnvironment();
    this.#bridge = spawn("python3", [BRIDGE, `${columns}x${rows}`, process.execPath, MAIN, ...args], {
      cwd,
      env: { ...environment, TERM: "xterm-256color", ...env },
      stdio: ["pipe", "pipe", "inherit", "pipe"],
    });
    const { stdout, stdin } = this.#bridge;
    const pid = this.#bridge.stdio[3];
    stdin?.on("error", () => undefined);
    stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.raw += text;
      this.screen.write(text);
      for (const look of this.#watchers) look();
    });
    this.#pid = new Promise((resolve) => pid?.once("data", (bytes: Buffer) => resolve(Number(bytes.toString()))));
    this.ended = new Promise((resolve) => {
      this.#bridge.once("close", (code) => {
        this.#isOver = true;
        for (const look of this.#watchers) look();
        resolve(code ?? -1);
      });
    });
    onTestFinished(async () => {
      if (!this.#isOver) await this.kill();
    });
  }

  /** Types. */
  type(keys: string): void {
    this.#bridge.stdin?.write(keys);
  }

  /** Types a line and Enter. */
  enter(line: string): void {
    this.type(`${line}\r`);
  }

  /** Resolves once `what` is or was on the screen. Rejects when it does not come, with what is there. */
  async sees(what: string | RegExp): Promise<string> {
    const found = (): string | undefined => {
      const { text } = this.screen;
      return typeof what === "string" ? (text.includes(what) ? what : undefined) : what.exec(text)?.[0];
    };
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        done();
        reject(new Error(`${why}: ${String(what)} is not on the screen:\n${this.screen.text}`));
      };
      const timer = setTimeout(() => fail(`after ${SEE_TIMEOUT_MS} ms`), SEE_TIMEOUT_MS);
      const done = (): void => {
        clearTimeout(timer);
        this.#watchers.delete(look);
      };
      const look = (): void => {
        const match = found();
        if (match !== undefined) {
          done();
          resolve(match);
        } else if (this.#isOver) fail("the program has ended");
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** `kill -9` of the program. */
  async kill(): Promise<void> {
    process.kill(await this.#pid, "SIGKILL");
    await this.ended;
  }
}
