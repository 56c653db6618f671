/** Notes that are forgotten at the end, for a host whose journal is in memory too. */

import type { SessionUid } from "../../base/index.ts";
import type { Note, NoteStore } from "../../spi/index.ts";

interface SessionNotes {
  readonly notes: Map<string, Note>;
  readonly lists: Map<string, Uint8Array[]>;
}

/** An empty store. */
export function createMemoryNotes(): NoteStore {
  const sessions = new Map<SessionUid, SessionNotes>();
  const of = (session: SessionUid): SessionNotes => {
    const known = sessions.get(session) ?? { notes: new Map(), lists: new Map() };
    sessions.set(session, known);
    return known;
  };
  return {
    get: async (session, key) => sessions.get(session)?.notes.get(key),

    async put({ session, key, value, replaces }) {
      const { notes } = of(session);
      const version = notes.get(key)?.version ?? 0;
      if (version !== replaces) return { kind: "conflict", version };
      notes.set(key, { value: new Uint8Array(value), version: version + 1 });
      return { kind: "kept", version: version + 1 };
    },

    async append({ session, list, value, entriesMax }) {
      const { lists } = of(session);
      const entries = lists.get(list) ?? [];
      if (entries.length >= entriesMax) return undefined;
      lists.set(list, entries);
      return entries.push(new Uint8Array(value));
    },

    async entries({ session, list, after, limit }) {
      const entries = sessions.get(session)?.lists.get(list) ?? [];
      return entries.slice(after, after + limit).map((value, index) => ({ place: after + index + 1, value }));
    },

    remove: async (session) => void sessions.delete(session),

    [Symbol.asyncDispose]: async () => undefined,
  };
}
