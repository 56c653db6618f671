/**
 * A server as a process: its signals, and the one line that it says.
 *
 * The first SIGTERM or SIGINT shuts it down with the configured grace; a second one ends the process at once with 128 + the
 * signal's number, and what was running stays interrupted.
 */

import { constants } from "node:os";
import { readConfig, type Environment, type Flags, type ServerConfig } from "./config.ts";
import { startServer, type ServerOptions } from "./start.ts";

export interface ServeOptions extends ServerOptions {
  readonly flags: Flags;
  readonly env: Environment;
  /** Takes the line that says where the server answers, without a line feed. */
  readonly say: (line: string) => void;
}

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

/** Runs a server until a signal ends it. Rejects with a HoldfastError, and without a server, when it cannot start. */
export async function serve({ flags, env, say, ...options }: ServeOptions): Promise<void> {
  const config = readConfig(flags, env);
  const server = await startServer(config, options);
  const asked = signalled();
  say(`holdfast is listening on ${server.url} (${journalWords(config)})`);
  await asked.first;
  await server.shutdown();
  asked.stop();
}

function journalWords({ store }: ServerConfig): string {
  return store.kind === "memory" ? "journal in memory" : `data in ${store.folder}`;
}

/** Resolves at the first signal; the second one does not ask. */
function signalled(): { readonly first: Promise<void>; stop(): void } {
  const first = Promise.withResolvers<void>();
  let count = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    count++;
    if (count > 1) process.exit(128 + constants.signals[signal]);
    first.resolve();
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    first: first.promise,
    stop: () => {
      for (const signal of SIGNALS) process.off(signal, onSignal);
    },
  };
}
