/**
 * One server: started, watched, started again, its tools kept current.
 *
 * Invariants:
 * - A server that fails takes nothing else down. Its tools stay on offer while it is away, once they were known: a model's tools do not
 *   change because a process was restarted.
 * - It is started again after a pause that grows, and shrinks again once it has stayed for a while.
 */

import { hash } from "node:crypto";
import { textStart } from "../../base/bytes.ts";
import { HoldfastError, type Clock, type Log } from "../../base/index.ts";
import type { ToolCall, ToolResult, ToolRun } from "../../spi/index.ts";
import { failedCall, isGoneSession } from "./call-failure.ts";
import { Connection } from "./connection.ts";
import { listedTools, type McpTool } from "./listed-tools.ts";
import { DEFAULT_OUTPUT_BYTES_MAX } from "../bounded-output.ts";
import { DEFAULT_TIMEOUT_MS, type McpServerOptions, type McpToolsOptions } from "./options.ts";
import { toolResultOf } from "./result.ts";

const PAUSE_MS_MIN = 250;
const PAUSE_MS_MAX = 30_000;
/** A server that lived so long is started again without a long pause. */
const STEADY_MS = 30_000;
/** Tools are listed again at most so often, however often a server says that they have changed. */
const REFRESH_EVERY_MS = 1_000;

export interface ServerContext extends Omit<McpToolsOptions, "servers"> {
  readonly name: string;
  readonly options: McpServerOptions;
  /** Its tools are other ones now. */
  readonly onTools: () => void;
}

export class McpServer implements AsyncDisposable {
  /** Resolves when the first attempt to start it has come to an end, good or bad. */
  readonly tried: Promise<void>;
  readonly #context: ServerContext;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #ending = new AbortController();
  readonly #run: Promise<void>;
  readonly #attempt = Promise.withResolvers<void>();
  #current: Connection | undefined;
  #connected = newConnected();
  #tools: ReadonlyMap<string, McpTool> = new Map();
  /** When the tools were last listed. */
  #listedAtMs = -REFRESH_EVERY_MS;
  #refreshing: Promise<void> | undefined;

  constructor(context: ServerContext) {
    this.#context = context;
    this.#clock = context.clock;
    this.#log = context.log;
    this.tried = this.#attempt.promise;
    this.#run = this.#live();
  }

  get tools(): ReadonlyMap<string, McpTool> {
    return this.#tools;
  }

  /**
   * Calls one of its tools. Where it is not known whether the call took effect, the result says so, unless the tool is idempotent. A
   * call that certainly was not taken up rejects with UNAVAILABLE.
   */
  async call(tool: McpTool, call: ToolCall, run: ToolRun): Promise<ToolResult> {
    const timeoutMs = this.#context.options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const deadlineMs = this.#clock.monotonicMs() + timeoutMs;
    for (let attempt = 1; ; attempt++) {
      const connection = await this.#connection(deadlineMs, run.signal);
      try {
        const leftMs = Math.max(1, Math.ceil(deadlineMs - this.#clock.monotonicMs()));
        const request = { tool: tool.tool, args: call.args ?? {}, schema: tool.host.definition.inputSchema ?? {}, timeoutMs: leftMs };
        const found = await connection.call({
          ...request,
          idempotencyKey: effectKey(run.session, call.idempotencyKey),
          signal: run.signal,
          progress: run.progress,
        });
        const { outputBytesMax = DEFAULT_OUTPUT_BYTES_MAX } = this.#context.options;
        return await toolResultOf(call.id, found, { blobs: run.blobs, outputBytesMax });
      } catch (error) {
        // A server that does not know the session any more has not looked at the call.
        if (isGoneSession(error) && attempt === 1) {
          this.#away(connection);
          await connection.close();
          continue;
        }
        this.#log.log("debug", "mcp: a call failed", { server: this.#context.name, tool: tool.tool, error: messageOf(error) });
        return failedCall(call.id, error, { isIdempotent: tool.host.idempotent, isCancelled: run.signal.aborted, timeoutMs });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#run;
  }

  /** The connection, waited for while the server is being started again. */
  async #connection(deadlineMs: number, signal: AbortSignal): Promise<Connection> {
    const late = Promise.withResolvers<never>();
    const away = (): void => late.reject(unreached());
    const timer = this.#clock.after(Math.max(0, deadlineMs - this.#clock.monotonicMs()), away);
    signal.addEventListener("abort", away, { once: true });
    if (signal.aborted) away();
    try {
      return await Promise.race([late.promise, this.#connected.promise]);
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", away);
    }
  }

  /** Nobody is given this connection any more. */
  #away(connection: Connection): void {
    if (this.#current !== connection) return;
    this.#current = undefined;
    this.#connected = newConnected();
  }

  /** Starts it, again and again, until it is disposed of. */
  async #live(): Promise<void> {
    const { signal } = this.#ending;
    let pauseMs = PAUSE_MS_MIN;
    for (let attempt = 1; !signal.aborted; attempt++) {
      const startedAtMs = this.#clock.monotonicMs();
      const reason = await this.#liveOnce(attempt);
      this.#attempt.resolve();
      if (signal.aborted) break;
      pauseMs = this.#clock.monotonicMs() - startedAtMs > STEADY_MS ? PAUSE_MS_MIN : pauseMs;
      this.#log.log("warn", "mcp: a server is away", { server: this.#context.name, reason, againInMs: pauseMs });
      await this.#clock.sleep(pauseMs, { signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
    }
    this.#connected.reject(unreached());
  }

  /** From one start to the end; resolves with why it ended. */
  async #liveOnce(attempt: number): Promise<string> {
    const { name: server, options, version } = this.#context;
    try {
      const connection = await Connection.open({
        server,
        reach: options.reach,
        // Asking a child first would start it twice, so that is left for one that does not understand the older way.
        negotiation: options.reach.kind === "http" || attempt % 2 === 0 ? "auto" : "legacy",
        clock: this.#clock,
        log: this.#log,
        version,
        onToolsChanged: () => void this.#refresh(connection),
      });
      return await this.#liveOver(connection);
    } catch (error) {
      return messageOf(error);
    }
  }

  async #liveOver(connection: Connection): Promise<string> {
    const { signal } = this.#ending;
    const close = (): void => void connection.close();
    signal.addEventListener("abort", close, { once: true });
    if (signal.aborted) close();
    try {
      await this.#list(connection);
      this.#log.log("info", "mcp: a server is here", { server: this.#context.name, tools: this.#tools.size });
      this.#current = connection;
      this.#connected.resolve(connection);
      this.#attempt.resolve();
      return await connection.ended;
    } finally {
      signal.removeEventListener("abort", close);
      this.#away(connection);
      await connection.close();
    }
  }

  async #list(connection: Connection): Promise<void> {
    this.#listedAtMs = this.#clock.monotonicMs();
    const { name: server, options, onTools } = this.#context;
    const { tools, left } = listedTools(server, await connection.listTools(), options);
    this.#tools = tools;
    const [first] = left;
    if (first !== undefined)
      this.#log.log("warn", "mcp: tools are left out", { server, count: left.length, tool: first.tool, why: first.why });
    onTools();
  }

  /** Lists the tools again soon; once, however often it is asked meanwhile. */
  #refresh(connection: Connection): Promise<void> {
    this.#refreshing ??= this.#refreshSoon(connection).finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  async #refreshSoon(connection: Connection): Promise<void> {
    try {
      const sinceMs = this.#clock.monotonicMs() - this.#listedAtMs;
      await this.#clock.sleep(Math.max(0, REFRESH_EVERY_MS - sinceMs), { signal: this.#ending.signal });
      await this.#list(connection);
    } catch (error) {
      this.#log.log("debug", "mcp: the tools could not be listed again", { server: this.#context.name, error: messageOf(error) });
    }
  }
}

function newConnected(): PromiseWithResolvers<Connection> {
  const connected = Promise.withResolvers<Connection>();
  connected.promise.catch(() => undefined);
  return connected;
}

/** One text for the effect, which tells a server nothing of the session. */
function effectKey(session: string, key: string): string {
  return hash("sha256", JSON.stringify([session, key]), "hex");
}

function unreached(): HoldfastError {
  return new HoldfastError("unavailable", "tool: its MCP server is not there, so the call was not made; try again later");
}

function messageOf(error: unknown): string {
  return textStart((error instanceof Error ? error.message : "unknown").toWellFormed(), 2_560);
}
