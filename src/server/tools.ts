/** The tools of a host: the one that spawns, the program's own and those of the config file's MCP servers, as one executor. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { invalidArgument, type Log, type Ports } from "../base/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { createSpawnTool, SPAWN_TOOL, type SpawnTool } from "../service/index.ts";
import { joinTools, type HarnessCatalog, type ToolExecutor } from "../spi/index.ts";
import { openMcpTools } from "../tools/index.ts";
import type { ServerConfig } from "./config.ts";
import { refuseUnknownAgents } from "./spawn-config.ts";

/** A host's tools. Disposing of them ends the servers that were started for them. */
export interface HostTools extends AsyncDisposable {
  /** Undefined on a host that has none. */
  readonly executor: ToolExecutor | undefined;
  /** Undefined on a host that spawns nothing. It is to be started once there is a controller. */
  readonly spawn: SpawnTool | undefined;
}

export interface HostToolsOptions {
  readonly config: Pick<ServerConfig, "store" | "tools" | "spawn">;
  /** The executor of the program that starts the host; its tools go before those of the servers. */
  readonly program: ToolExecutor | undefined;
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly ports: Ports;
  readonly log: Log;
}

/** Opens them. A server that cannot be had takes nothing down; see `openMcpTools`. */
export async function openHostTools(options: HostToolsOptions): Promise<HostTools> {
  const { config, program, ports, log } = options;
  const spawn = spawnToolOf(options);
  const { servers } = config.tools;
  const hasServers = Object.keys(servers).length > 0;
  const mcp = hasServers ? await openMcpTools({ servers, clock: ports.clock, log, version: ownVersion() }) : undefined;
  const [first, ...more] = [spawn, program, mcp].filter((executor) => executor !== undefined);
  return {
    executor: first === undefined || more.length === 0 ? first : joinTools(first, ...more),
    spawn,
    [Symbol.asyncDispose]: async () => {
      await spawn?.[Symbol.asyncDispose]();
      await mcp?.[Symbol.asyncDispose]();
    },
  };
}

function spawnToolOf({ config, program, journal, harnesses, ports, log }: HostToolsOptions): SpawnTool | undefined {
  if (config.spawn === undefined) return undefined;
  if (program?.find(SPAWN_TOOL) !== undefined)
    throw invalidArgument("spawn", "must not be configured where the program has a tool of this name");
  refuseUnknownAgents(harnesses, config.spawn);
  return createSpawnTool({ ...config.spawn, journal, harnesses, ports, log });
}

/** The version in package.json, which lies two folders up both in the sources and in what is published. */
function ownVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8"));
  const isNamed = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return isNamed && typeof manifest.version === "string" ? manifest.version : "0";
}
