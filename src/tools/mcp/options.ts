/** How MCP servers are reached and what is taken from them. */

import type { Clock, Log } from "../../base/index.ts";

/** A child process that speaks over its standard streams. */
export interface StdioReach {
  readonly kind: "stdio";
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  /** Beside these it gets HOME, LOGNAME, PATH, SHELL, TERM and USER of the host, and nothing else of it. */
  readonly env: Readonly<Record<string, string>>;
}

/** Streamable HTTP. */
export interface HttpReach {
  readonly kind: "http";
  readonly url: string;
  /** Sent with every request; they may be secrets. */
  readonly headers: Readonly<Record<string, string>>;
}

/** One server. */
export interface McpServerOptions {
  readonly reach: StdioReach | HttpReach;
  /** How long a call may take in all. Default 120,000. */
  readonly timeoutMs?: number | undefined;
  /** How many bytes of text and structured output of one result are kept inline. Default 65,536. */
  readonly outputBytesMax?: number | undefined;
  /** The tools, by the server's own names, whose calls may be made again after a crash. */
  readonly idempotent?: readonly string[] | undefined;
  /** Whether a tool that the server calls read-only or idempotent is taken for idempotent. Default false: a hint is no promise. */
  readonly trustHints?: boolean | undefined;
  /** The tools to offer, by the server's own names. Default: all. */
  readonly allow?: readonly string[] | undefined;
}

/** The servers of a host. */
export interface McpToolsOptions {
  /** By name: 1 to 32 letters, digits, `-` and single `_`. Tools are offered as `NAME__tool`. */
  readonly servers: Readonly<Record<string, McpServerOptions>>;
  readonly clock: Clock;
  readonly log: Log;
  /** The host's version, which servers are told. */
  readonly version: string;
}

export const DEFAULT_TIMEOUT_MS = 120_000;
/** The largest message of a server. */
export const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
