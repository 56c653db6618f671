/**
 * One connection to a server, from its start to its end.
 *
 * Invariants:
 * - The end is told once, with a reason for the log.
 * - A server that sends more messages than anybody could use is let go: each one costs the host time.
 * - Nothing is sent twice: what the SDK might retry is switched off here.
 */

import { Client, StreamableHTTPClientTransport, type Progress } from "@modelcontextprotocol/client";
import { textStart } from "../../base/bytes.ts";
import type { Clock, Log, Timer } from "../../base/index.ts";
import { isJsonObject } from "../json.ts";
import { boundedFetch } from "./bounded-fetch.ts";
import { ChildTransport } from "./child-transport.ts";
import type { HttpReach, StdioReach } from "./options.ts";

export interface ConnectionOptions {
  readonly server: string;
  readonly reach: StdioReach | HttpReach;
  /** Which protocol is tried: `legacy` is `initialize`, `auto` asks the server first. */
  readonly negotiation: "legacy" | "auto";
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
  /** The server says that its tools have changed. */
  readonly onToolsChanged: () => void;
}

/** What a call is asked with. */
export interface CallRequest {
  /** The server's own name of the tool. */
  readonly tool: string;
  readonly args: Record<string, unknown>;
  readonly schema: Record<string, unknown>;
  /** Names the effect, for servers that look at it. */
  readonly idempotencyKey: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly progress: ((detail: string) => void) | undefined;
}

/** How long a server may take to start, and then to list its tools. */
const START_MS = 30_000;
/** How often a server that is reached over HTTP is asked whether it is still there. */
const PING_EVERY_MS = 30_000;
const PING_MS = 10_000;
const END_SESSION_MS = 1_000;
/** More messages than that within two seconds are a flood. */
const FLOOD_MESSAGES = 4_000;
const FLOOD_MS = 2_000;
const LIST_PAGES_MAX = 128;
const LISTED_MAX = 20_000;
const STDERR_BYTES_MAX = 2 * 1024;
const PROGRESS_BYTES_MAX = 1_024;

/** The key in `_meta` under which a server is told what names the effect of a call. */
export const IDEMPOTENCY_META_KEY = "holdfast/idempotency-key";

/** A live connection. */
export class Connection {
  /** Resolves with a reason when it has ended. */
  readonly ended: Promise<string>;
  readonly #client: Client;
  readonly #http: StreamableHTTPClientTransport | undefined;
  readonly #clock: Clock;
  readonly #end: (reason: string) => void;
  #ping: Timer | undefined;
  #isChecking = false;

  /** Connects. Rejects where the server cannot be reached, or does not speak the protocol, in time. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const { server, reach, version, negotiation, clock, log, onToolsChanged } = options;
    const words = new LastWords();
    const transport =
      reach.kind === "stdio"
        ? new ChildTransport({ ...reach, clock, onStderr: (chunk) => words.push(chunk) })
        : new StreamableHTTPClientTransport(new URL(reach.url), { requestInit: { headers: reach.headers }, fetch: boundedFetch() });
    const client = new Client(
      { name: "holdfast", version },
      {
        capabilities: {},
        versionNegotiation: { mode: negotiation },
        inputRequired: { autoFulfill: false },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: onToolsChanged } },
      },
    );
    const ended = Promise.withResolvers<string>();
    const connection = new Connection(client, transport instanceof ChildTransport ? undefined : transport, clock, ended);
    Object.assign(transport, { onmessage: floodGuard(clock, () => connection.#cutOff("it sends too many messages")) });
    Object.assign(client, {
      onclose: () => connection.#end(`the connection ended${words.text()}`),
      onerror: (error: Error) => {
        log.log("debug", "mcp: an error of a server's connection", { server, error: textStart(error.message.toWellFormed(), 256) });
        connection.#check();
      },
    });
    try {
      await client.connect(transport, { timeout: START_MS });
    } catch (error) {
      await connection.close();
      throw new Error(`${error instanceof Error ? error.message : "it cannot be reached"}${words.text()}`, { cause: error });
    }
    connection.#watch();
    return connection;
  }

  private constructor(client: Client, http: StreamableHTTPClientTransport | undefined, clock: Clock, ended: PromiseWithResolvers<string>) {
    this.#client = client;
    this.#http = http;
    this.#clock = clock;
    this.ended = ended.promise;
    this.#end = (reason) => {
      this.#ping?.cancel();
      ended.resolve(reason);
    };
  }

  /** The tools as the server lists them, at most 20,000. */
  async listTools(): Promise<readonly unknown[]> {
    const tools: unknown[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < LIST_PAGES_MAX && tools.length < LISTED_MAX; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const result = await this.#client.request({ method: "tools/list", params }, ANYTHING, { timeout: START_MS });
      if (!isJsonObject(result) || !Array.isArray(result["tools"])) throw new Error("it does not list its tools");
      tools.push(...result["tools"].slice(0, LISTED_MAX - tools.length));
      const next = result["nextCursor"];
      if (typeof next !== "string" || next === "" || next === cursor) break;
      cursor = next;
    }
    return tools;
  }

  /** Calls a tool once. Rejects as the SDK does. */
  call({ tool, args, schema, idempotencyKey, timeoutMs, signal, progress }: CallRequest): Promise<unknown> {
    const params = { name: tool, arguments: args, _meta: { [IDEMPOTENCY_META_KEY]: idempotencyKey } };
    return this.#client.callTool(params, {
      // Given, it is neither fetched, nor is a refused call made again. Without an output schema no good result is refused.
      toolDefinition: { name: tool, inputSchema: { ...schema, type: "object" } },
      timeout: timeoutMs,
      signal,
      ...(progress === undefined ? {} : { onprogress: (told) => progress(progressText(told)) }),
    });
  }

  /** Ends it; a child process ends with it. */
  async close(): Promise<void> {
    this.#ping?.cancel();
    if (this.#http?.sessionId !== undefined) {
      const late = Promise.withResolvers<void>();
      const timer = this.#clock.after(END_SESSION_MS, late.resolve);
      await Promise.race([this.#http.terminateSession().catch(() => undefined), late.promise]);
      timer.cancel();
    }
    await this.#client.close().catch(() => undefined);
    this.#end("the connection was closed");
  }

  #cutOff(reason: string): void {
    this.#end(reason);
    void this.#client.close().catch(() => undefined);
  }

  #watch(): void {
    // What is newer than `initialize` holds no session, and so nothing that could be gone.
    if (this.#http === undefined || this.#client.getProtocolEra() === "modern") return;
    this.#ping = this.#clock.after(PING_EVERY_MS, () => this.#check());
  }

  /** Asks a server over HTTP whether it is still there, and lets it go where it is not. */
  #check(): void {
    if (this.#ping === undefined || this.#isChecking) return;
    this.#isChecking = true;
    this.#ping.cancel();
    this.#client.ping({ timeout: PING_MS }).then(
      () => {
        this.#isChecking = false;
        this.#watch();
      },
      () => this.#cutOff("it does not answer any more"),
    );
  }
}

/** Takes any result: lists are looked at tool by tool. */
const ANYTHING = {
  "~standard": { version: 1, vendor: "holdfast", validate: (value: unknown) => ({ value }) },
} as const;

/** Counts messages, and calls `flooded` where too many come at once. */
function floodGuard(clock: Clock, flooded: () => void): () => void {
  let count = 0;
  let sinceMs = clock.monotonicMs();
  return () => {
    count += 1;
    if (count <= FLOOD_MESSAGES) return;
    const nowMs = clock.monotonicMs();
    if (nowMs - sinceMs < FLOOD_MS) flooded();
    count = 0;
    sinceMs = nowMs;
  };
}

function progressText({ progress, total, message }: Progress): string {
  const share = total === undefined ? String(progress) : `${progress}/${total}`;
  return textStart(message === undefined ? share : `${share} ${message}`.toWellFormed(), PROGRESS_BYTES_MAX);
}

/** The end of what a server wrote to standard error: it often says why it could not start. */
class LastWords {
  #bytes = Buffer.alloc(0);

  push(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]).subarray(-STDERR_BYTES_MAX);
  }

  text(): string {
    const text = this.#bytes.toString("utf8").trim();
    return text === "" ? "" : `; it last said: ${text}`;
  }
}
