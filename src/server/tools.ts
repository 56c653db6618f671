/** The tools of a host: the program's own and those of the config file's MCP servers, as one executor. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Log, Ports } from "../base/index.ts";
import { joinTools, type BlobStore, type ToolExecutor } from "../spi/index.ts";
import { openMcpTools } from "../tools/index.ts";
import type { ServerConfig } from "./config.ts";
import { openBlobs } from "./runtimes.ts";

/** A host's tools. Disposing of them ends the servers that were started for them. */
export interface HostTools extends AsyncDisposable {
  /** Undefined on a host that has none. */
  readonly executor: ToolExecutor | undefined;
  /** Takes their large outputs; undefined on a host that has none. */
  readonly blobs: BlobStore | undefined;
}

export interface HostToolsOptions {
  readonly config: Pick<ServerConfig, "store" | "tools">;
  /** The executor of the program that starts the host; its tools go before those of the servers. */
  readonly program: ToolExecutor | undefined;
  readonly ports: Ports;
  readonly log: Log;
}

/** Opens them. A server that cannot be had takes nothing down; see `openMcpTools`. */
export async function openHostTools({ config, program, ports, log }: HostToolsOptions): Promise<HostTools> {
  const { servers } = config.tools;
  const hasServers = Object.keys(servers).length > 0;
  const blobs = hasServers || program !== undefined ? openBlobs({ config, ports }) : undefined;
  if (!hasServers) return { executor: program, blobs, [Symbol.asyncDispose]: () => Promise.resolve() };
  const mcp = await openMcpTools({ servers, clock: ports.clock, log, version: ownVersion() });
  const executor = program === undefined ? mcp : joinTools(program, mcp);
  return { executor, blobs, [Symbol.asyncDispose]: () => mcp[Symbol.asyncDispose]() };
}

/** The version in package.json, which lies two folders up both in the sources and in what is published. */
function ownVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8"));
  const isNamed = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return isNamed && typeof manifest.version === "string" ? manifest.version : "0";
}
