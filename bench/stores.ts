/** Journals for measurements: opened on Node's ports, filled, and taken away again. */

import { newSessionUid, type Ports, type SessionUid } from "../src/base/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../src/node/index.ts";
import type { JournalStore, SessionSeed } from "../src/journal/index.ts";
import { openSqliteStore } from "../src/stores/sqlite/index.ts";
import type { BenchContext } from "./context.ts";

/** The ports of this machine. */
export const PORTS: Ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };

/** Where the journal's file is written: in the thread that appends, or in one of its own. */
export type WriterMode = "inline" | "worker";

/** Runs `work` on a new, empty SQLite journal and removes it afterwards. */
export async function withStore<T>(context: BenchContext, writer: WriterMode, work: (store: JournalStore) => Promise<T>): Promise<T> {
  const folder = context.newFolder();
  const store = await openStore(folder, writer);
  try {
    return await work(store);
  } finally {
    await store[Symbol.asyncDispose]();
    context.removeFolder(folder);
  }
}

/** Opens the SQLite journal of a folder. */
export function openStore(folder: string, writer: WriterMode): Promise<JournalStore> {
  return openSqliteStore({ folder, clock: PORTS.clock, digest: PORTS.digest, writer });
}

/** Creates a session and returns its uid. */
export async function createSession(store: JournalStore, seed: Partial<SessionSeed> = {}): Promise<SessionUid> {
  const outcome = await store.create({
    uid: newSessionUid(PORTS),
    project: "",
    name: "",
    harness: "echo",
    model: "echo",
    identity: undefined,
    origin: undefined,
    labels: {},
    annotations: {},
    createTimeMs: PORTS.clock.nowMs(),
    ...seed,
  });
  if (outcome.kind !== "created") throw new Error(`a session could not be created: ${outcome.kind}`);
  return outcome.row.seed.uid;
}

/** Creates `count` sessions, all in one tick. */
export function createSessions(store: JournalStore, count: number, seed: Partial<SessionSeed> = {}): Promise<SessionUid[]> {
  return Promise.all(Array.from({ length: count }, () => createSession(store, seed)));
}
