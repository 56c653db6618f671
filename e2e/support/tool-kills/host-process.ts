/** A server as a process of its own, and clients that wait while it is gone. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient, type Client } from "../../../src/client/index.ts";
import { createNodeTransport } from "../../../src/client/node/index.ts";

const PROGRAM = join(import.meta.dirname, "host.ts");

export interface HostOptions {
  readonly data: string;
  readonly ledgers: string;
  readonly modelUrl: string;
  readonly recover: "leave" | "resume";
  /** Another one for each start. */
  readonly life: number;
}

/** One life of the server, from its start to its kill. */
export class HostProcess {
  /** Resolves with a client once it listens; rejects when it ends before. */
  readonly ready: Promise<Client>;
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #mcpPidFile: string;

  constructor({ data, ledgers, modelUrl, recover, life }: HostOptions) {
    this.#mcpPidFile = join(ledgers, `mcp-${life}.pid`);
    const args = [PROGRAM, data, ledgers, this.#mcpPidFile, modelUrl, recover];
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.#child = child;
    this.#exited = once(child, "exit");
    this.ready = urlFrom(child.stdout).then((address) => createClient({ transport: createNodeTransport({ address }) }));
    // A life that is ended before it has begun is nobody's fault.
    this.ready.catch(() => undefined);
  }

  /** kill -9, and the MCP server with it where that is asked for; else that one goes on with what it was doing. */
  async kill({ withTools }: { readonly withTools: boolean }): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
    if (withTools && existsSync(this.#mcpPidFile)) killGroup(Number(readFileSync(this.#mcpPidFile, "utf8")));
  }

  /** An ordinary end. */
  async end(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#exited;
  }
}

async function urlFrom(stdout: NodeJS.ReadableStream): Promise<string> {
  let said = "";
  for await (const chunk of stdout) {
    said += String(chunk);
    const url = /listening on (\S+)\n/.exec(said)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error("the server ended before it listened");
}

/** The MCP server leads a group of its own, whose number stays taken while a member of it lives. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** Where clients are had: the server's while one lives, and the next one's while none does. It owns them. */
export class Doorway implements AsyncDisposable {
  #opened = Promise.withResolvers<void>();
  #latest: Client | undefined;
  #isOpen = false;

  /** The client before is closed only now: until there is a next one, whoever has it gets his UNAVAILABLE from it. */
  async open(client: Client): Promise<void> {
    const before = this.#latest;
    this.#latest = client;
    this.#isOpen = true;
    this.#opened.resolve();
    this.#opened = Promise.withResolvers<void>();
    await before?.[Symbol.asyncDispose]();
  }

  close(): void {
    this.#isOpen = false;
  }

  /** A client, as soon as there is one, and one that is not `gone`. */
  async client(gone?: Client): Promise<Client> {
    for (;;) {
      if (this.#isOpen && this.#latest !== undefined && this.#latest !== gone) return this.#latest;
      await this.#opened.promise;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#latest?.[Symbol.asyncDispose]();
  }
}
