/**
 * Where the demo plays: a folder with a copy of the example, a server as a process of its own, and commands that are processes of their own
 * too. Everything that runs is printed before it runs, and everything that it says is printed as it says it.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const EXAMPLE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = resolve(EXAMPLE, "..", "..");
const BIN = join(ROOT, "bin", "holdfast.mjs");
/** What of the example is copied: whatever a run changes, it changes in its own folder. */
const COPIED = ["holdfast.json", "clerk.yaml", "script.yaml", "shop"] as const;

export interface Ran {
  /** Null where it was not there to be run. */
  readonly exitCode: number | null;
  readonly stdout: string;
}

interface RunOptions {
  /** Its standard output is a program's to read, and is not printed. */
  readonly quiet?: boolean;
}

export class Stage {
  /** The folder that everything of this run is in. */
  readonly folder: string;
  #server: ChildProcess | undefined;
  #url = "";

  /** Makes the folder; in the system's temporary folder where none is named. */
  constructor(folder: string | undefined) {
    this.folder = folder === undefined ? mkdtempSync(join(tmpdir(), "holdfast-demo-")) : resolve(folder);
    mkdirSync(this.folder, { recursive: true });
    for (const name of COPIED) cpSync(join(EXAMPLE, name), join(this.folder, name), { recursive: true });
  }

  /** The running server's address. */
  get url(): string {
    return this.#url;
  }

  /** Starts `holdfast serve` at a free port, and waits until it listens. */
  async serve(model: string): Promise<void> {
    const args = ["serve", "--config", "holdfast.json", "--model", model, "--listen", "127.0.0.1:0", "--registry-listen", "off"];
    say(`   $ holdfast ${args.join(" ")}`);
    const server = spawn(process.execPath, [BIN, ...args, "--log-level", "warn"], {
      cwd: this.folder,
      env: environment(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#server = server;
    let said = "";
    for await (const chunk of server.stdout.iterator({ destroyOnReturn: false })) {
      said += String(chunk);
      this.#url = /listening on (\S+) /.exec(said)?.[1] ?? "";
      if (this.#url === "") continue;
      say(`   process ${server.pid} listens on ${this.#url}`);
      return;
    }
    throw new Error("the server did not start; what it says is above");
  }

  /** Ends the server with a signal, and waits until it is gone. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const server = this.#server;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = new Promise((done) => server.once("exit", done));
    if (signal === "SIGKILL") say(`   $ kill -9 ${server.pid}`);
    server.kill(signal);
    await gone;
  }

  /** Runs a `holdfast` command against the server. */
  async holdfast(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    say(`   $ holdfast ${args.map(quoted).join(" ")}`);
    return await this.#run(process.execPath, [BIN, ...args], options);
  }

  /** Waits until the session's journal has so many decisions. */
  async untilDecided(session: string, count: number): Promise<void> {
    const child = spawn(process.execPath, [BIN, "tail", session, "--json"], {
      env: { ...environment(), HOLDFAST_SERVER: this.#url },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let found = 0;
    for await (const line of createInterface({ input: child.stdout })) {
      if (line.includes('"kind":"EVENT_APPROVAL_RESULT"')) found += 1;
      if (found >= count) break;
    }
    child.kill("SIGKILL");
    if (found < count) throw new Error("the session could not be followed; what the command says is above");
  }

  /** Runs the verifier that shares no code with Holdfast. */
  async verifier(file: string): Promise<Ran> {
    say(`   $ python3 tools/verify/holdfast_verify.py ${file}`);
    return await this.#run("python3", [join(ROOT, "tools", "verify", "holdfast_verify.py"), file], {});
  }

  #run(file: string, args: readonly string[], { quiet = false }: RunOptions): Promise<Ran> {
    const child = spawn(file, args, {
      cwd: this.folder,
      env: { ...environment(), HOLDFAST_SERVER: this.#url },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    if (!quiet) sayLines(child.stdout);
    sayLines(child.stderr.setEncoding("utf8"));
    return new Promise((done, failed) => {
      child.once("error", (error: NodeJS.ErrnoException) =>
        error.code === "ENOENT" ? done({ exitCode: null, stdout: "" }) : failed(error),
      );
      child.once("close", (exitCode) => done({ exitCode: exitCode ?? 1, stdout }));
    });
  }
}

/** One line for the person who watches. */
export function say(line: string): void {
  console.log(line);
}

/** Prints what a stream says, line by line. */
function sayLines(stream: NodeJS.ReadableStream): void {
  let rest = "";
  stream.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) say(`   │ ${line}`);
  });
  stream.on("end", () => {
    if (rest !== "") say(`   │ ${rest}`);
  });
}

/**
 * The variables of the shell, with the programs of this clone's packages on the path, as npx has them. Of Holdfast's own only the provider's
 * stay, so that a run does not depend on how another server is set up.
 */
function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("HOLDFAST_") || name === "HOLDFAST_OPENAI_API");
  return {
    ...Object.fromEntries(kept),
    PATH: [join(ROOT, "node_modules", ".bin"), process.env["PATH"] ?? ""].join(delimiter),
    NO_COLOR: "1",
  };
}

function quoted(arg: string): string {
  return /^[\w./:=-]+$/.test(arg) ? arg : JSON.stringify(arg);
}
