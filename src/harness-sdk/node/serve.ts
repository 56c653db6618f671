/** Serving a harness from a program under Node. */

import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import { serveGrpc, serveLineOver } from "../../harness-wire/node/index.ts";
import type { Harness } from "../../spi/harness.ts";
import type { ServedHarness, ServeOptions } from "../serving.ts";
import { LISTEN_VARIABLE, takeStdio } from "./stdio.ts";
import { tellingThrows } from "./tell-throws.ts";

const DEFAULT_LISTEN = "127.0.0.1:7070";
const GRACE_MS = 5_000;

/** What serving has to be asked and told. */
interface Serving {
  readonly address: string;
  /** Resolves when the host has closed the line; never for a socket, which serves many. */
  readonly ended: Promise<void>;
  idle(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Serves a harness until the host closes the line, the program gets SIGTERM or SIGINT, or what is returned is disposed of. A program that
 * is told to end waits for its turns for a while, then ends. What a run throws is written to standard error. Rejects where it cannot listen.
 */
export async function serveHarness(harness: Harness, options: ServeOptions = {}): Promise<ServedHarness> {
  const listen = options.listen ?? process.env[LISTEN_VARIABLE] ?? DEFAULT_LISTEN;
  const telling = tellingThrows(harness, (text) => void process.stderr.write(text));
  const serving = listen === "stdio" ? serveStdio(telling, options) : await serveSocket(telling, listen, options);
  const closed = Promise.withResolvers<void>();
  let closing: Promise<void> | undefined;
  const close = (graceMs: number): Promise<void> => (closing ??= closeWithin(serving, graceMs).finally(closed.resolve));
  const onSignal = (): void => void close(options.graceMs ?? GRACE_MS);
  process.once("SIGTERM", onSignal);
  process.once("SIGINT", onSignal);
  void serving.ended.then(() => close(0));
  void closed.promise.then(() => {
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
  });
  return { address: serving.address, closed: closed.promise, [Symbol.asyncDispose]: () => close(0) };
}

function serveStdio(harness: Harness, options: ServeOptions): Serving {
  const line = serveLineOver(takeStdio(), harness, endOptions(options));
  return { address: "stdio", ended: line.closed, idle: () => line.end.idle(), close: async () => line.close() };
}

async function serveSocket(harness: Harness, listen: string, options: ServeOptions): Promise<Serving> {
  let served;
  try {
    served = await serveGrpc(harness, { ...endOptions(options), address: listen });
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "invalid_argument") throw error;
    throw invalidArgument("listen", "must be stdio, unix:///an/absolute/path or host:port", { cause: error });
  }
  const { address } = served;
  process.stderr.write(`harness served at ${address}\n`);
  return { address, ended: new Promise(() => undefined), idle: () => served.idle(), close: async () => served[Symbol.asyncDispose]() };
}

function endOptions({ history }: ServeOptions): { readonly pullsHistory: boolean } {
  return { pullsHistory: history !== "pushed" };
}

async function closeWithin(serving: Serving, graceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, graceMs)));
  await Promise.race([serving.idle(), late]);
  clearTimeout(timer);
  await serving.close();
}
