/** The runtimes of this host: from a harness's configuration to the backend that it runs on. Only here are they named. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { invalidArgument, unreachable, type Log, type Ports } from "../base/index.ts";
import { createGvisorRuntime } from "../runtimes/gvisor/index.ts";
import { createProcessRuntime } from "../runtimes/process/index.ts";
import { bundleHarness, createQuickJsRuntime, type BundleOptions } from "../runtimes/quickjs/index.ts";
import { createRemoteRuntime } from "../runtimes/remote/index.ts";
import type { Runtime } from "../spi/index.ts";
import type { HostCaptures } from "./captures.ts";
import type { ServerConfig } from "./config.ts";
import type { GvisorHarness, HarnessConfig, ProcessHarness, QuickjsHarness, RemoteHarness } from "./harness-config.ts";
import type { Grant } from "./harness-services.ts";

/** What runtimes are opened with. */
export interface RuntimesOptions {
  readonly config: Pick<ServerConfig, "store"> & Partial<Pick<ServerConfig, "hiddenFiles">>;
  readonly captures: HostCaptures;
  readonly ports: Ports;
  readonly log: Log;
  readonly grant: Grant | undefined;
}

/** Makes the runtime of a harness; at once for one that is served elsewhere, since nothing of it is read. */
export interface RuntimeOf {
  (config: RemoteHarness): Runtime;
  (config: HarnessConfig): Runtime | Promise<Runtime>;
}

/** What makes the runtimes of a host. It throws FAILED_PRECONDITION for a runtime that this host has not. */
export function createRuntimes(options: RuntimesOptions): RuntimeOf {
  const runtimeOf = (config: HarnessConfig): Runtime | Promise<Runtime> => {
    switch (config.runtime) {
      case "process":
        return processRuntime(config, options);
      case "quickjs":
        return quickjsRuntime(config, options);
      case "remote":
        return remoteRuntime(config, options);
      case "gvisor":
        return gvisorRuntime(config, options);
      default:
        return unreachable(config);
    }
  };
  return runtimeOf as RuntimeOf;
}

/** What of this host no sandbox sees, also where it lies beside the harness: the journal, what is stored with it, its settings and secrets. */
function hiddenOf({ store, hiddenFiles = [] }: RuntimesOptions["config"]): readonly string[] {
  return [...(store.kind === "memory" ? [] : [resolve(store.folder)]), ...hiddenFiles];
}

function processRuntime(config: ProcessHarness, { config: host, ports, log, grant }: RuntimesOptions): Runtime {
  const [command, ...args] = config.command;
  const hidden = hiddenOf(host);
  const { cwd, env, line, memoryBytesMax, cpuSecondsMax, confine } = config;
  return createProcessRuntime({ command, args, cwd, env, line, memoryBytesMax, cpuSecondsMax, confine, hidden, grant, ports, log });
}

function gvisorRuntime(config: GvisorHarness, { config: host, captures, ports, log }: RuntimesOptions): Promise<Runtime> {
  const [command, ...args] = config.command;
  const hidden = hiddenOf(host);
  const { cwd, env, memoryBytesMax, cpuSecondsMax } = config;
  return createGvisorRuntime({ command, args, cwd, env, memoryBytesMax, cpuSecondsMax, hidden, blobs: captures.store, ports, log });
}

function remoteRuntime({ address, tls }: RemoteHarness, { ports, log, grant }: RuntimesOptions): Runtime {
  return createRemoteRuntime({ address, tls, grant, ports, log });
}

async function quickjsRuntime(
  { script: path, memoryBytesMax }: QuickjsHarness,
  { captures, ports, log }: RuntimesOptions,
): Promise<Runtime> {
  const limits = memoryBytesMax === undefined ? undefined : { memoryBytes: memoryBytesMax };
  return createQuickJsRuntime({ script: await scriptOf(path), blobs: captures.store, ports, log, limits });
}

/** Harnesses that come with the host and live in a sandbox; they are bundled like anybody's. */
const BUILT_IN_SCRIPTS: Readonly<Record<string, BundleOptions>> = {
  "builtin:counter": { file: harnessFile("counter"), exportName: "createCounterHarness" },
  "builtin:repl": { file: harnessFile("repl"), exportName: "createReplHarness" },
};

function harnessFile(name: string): string {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`../harnesses/${name}.${extension}`, import.meta.url));
}

/**
 * A `.js` file is a finished script and is taken byte for byte, so that its captures outlive the bundler's versions; a module (`.ts`, `.mts`,
 * `.mjs`) is bundled with what it imports.
 */
async function scriptOf(path: string): Promise<string> {
  const builtIn = BUILT_IN_SCRIPTS[path];
  if (builtIn !== undefined) return bundleHarness(builtIn);
  const text = textOf(path);
  return /\.(?:ts|mts|mjs)$/.test(path) ? bundleHarness({ file: path }) : text;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw invalidArgument("script", "must name a file that can be read", { cause: error });
  }
}
