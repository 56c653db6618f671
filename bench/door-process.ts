/** The processes that the door is measured with: a server whose memory can be asked for, and a provider that takes its time. */

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";

/** What a server holds once it has given back what it can. */
export interface Settled {
  /** Resident, in bytes. */
  readonly rssBytes: number;
  /** Of JavaScript's objects, in bytes. */
  readonly heapBytes: number;
  /** Pieces that its turns have said so far. */
  readonly pieces: number;
}

/** A server in a process of its own. Disposing it shuts it down and waits for its process to end. */
export interface DoorServer extends AsyncDisposable {
  readonly url: string;
  settled(): Promise<Settled>;
}

/** A provider in a process of its own. */
export interface SlowProvider extends AsyncDisposable {
  readonly url: string;
  /** How long its answers since the last call took until their first piece left, by what the user had said. */
  tookMs(): Promise<ReadonlyMap<string, number>>;
}

/** Starts a server over the journal in `folder`; models that are no stub are asked for at `providerUrl`. */
export async function startDoorServer(folder: string, providerUrl?: string): Promise<DoorServer> {
  const { url, ask, end } = await started("./door-served.ts", [folder, ...(providerUrl === undefined ? [] : [providerUrl])]);
  return {
    url,
    settled: async () => {
      const { memory, pieces } = (await ask()) as { readonly memory: NodeJS.MemoryUsage; readonly pieces: number };
      return { rssBytes: memory.rss, heapBytes: memory.heapUsed, pieces };
    },
    [Symbol.asyncDispose]: end,
  };
}

/** Starts a provider whose first piece takes so long. */
export async function startSlowProvider(delayMs: number): Promise<SlowProvider> {
  const { url, ask, end } = await started("./door-provider.ts", [String(delayMs)]);
  return {
    url,
    tookMs: async () => new Map(((await ask()) as { readonly tookMs: readonly (readonly [string, number])[] }).tookMs),
    [Symbol.asyncDispose]: end,
  };
}

async function started(program: string, args: readonly string[]) {
  const child = fork(new URL(program, import.meta.url), args, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const exited = once(child, "exit");
  const { url } = (await messageOf(child, exited)) as { readonly url: string };
  return {
    url,
    ask: () => {
      const answer = messageOf(child, exited);
      child.send("ask");
      return answer;
    },
    end: async (): Promise<void> => {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

async function messageOf(child: ChildProcess, exited: Promise<unknown>): Promise<unknown> {
  const gone = exited.then(() => Promise.reject(new Error("a process of the bench ended before it answered")));
  const messages: unknown[] = await Promise.race([once(child, "message"), gone]);
  gone.catch(() => undefined);
  return messages[0];
}
