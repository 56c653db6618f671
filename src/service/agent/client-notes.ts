/**
 * What a session has of its client that outlives the server and is in no turn's config, over a NoteStore.
 *
 * Invariants:
 * - A change that was acknowledged is kept, whoever changes something else at the same time.
 * - A system context that came with tools is used by one turn: the next one that begins.
 */

import { clone, create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import type { SessionUid } from "../../base/ids.ts";
import { ClientNotesSchema, FeedbackNoteSchema, type ClientNotes, type FeedbackNote } from "../../gen/holdfast/v1/agent_notes_pb.ts";
import type { JournalStore, SessionRow } from "../../journal/index.ts";
import type { NoteStore } from "../../spi/index.ts";

/** The key of a session's ClientNotes, and the list of its feedback. */
const CLIENT = "client";
const FEEDBACK = "feedback";
/** How often a change is tried that another stream was faster with. */
const ATTEMPTS_MAX = 8;

/** The notes of one session, as the stream that has the session sees them. */
export class SessionNotes {
  readonly #store: NoteStore;
  readonly #session: SessionUid;
  #notes: ClientNotes;
  #version: number;

  private constructor(store: NoteStore, session: SessionUid, notes: ClientNotes, version: number) {
    this.#store = store;
    this.#session = session;
    this.#notes = notes;
    this.#version = version;
  }

  /** The notes of a session that is new. */
  static async begin(store: NoteStore, session: SessionUid, notes: ClientNotes): Promise<SessionNotes> {
    const begun = new SessionNotes(store, session, notes, 0);
    await begun.change(() => undefined);
    return begun;
  }

  /** The notes of a session that is there. A fork that has none of its own has its nearest ancestor's, until it changes them. */
  static async load(store: NoteStore, journal: Pick<JournalStore, "get">, row: SessionRow): Promise<SessionNotes> {
    const { uid } = row.seed;
    const own = await store.get(uid, CLIENT);
    if (own !== undefined) return new SessionNotes(store, uid, decoded(own.value), own.version);
    for (let { parent } = row; parent !== undefined; parent = (await journal.get(parent.uid))?.parent) {
      const note = await store.get(parent.uid, CLIENT);
      if (note !== undefined) return new SessionNotes(store, uid, decoded(note.value), 0);
    }
    return new SessionNotes(store, uid, create(ClientNotesSchema), 0);
  }

  get current(): Readonly<ClientNotes> {
    return this.#notes;
  }

  /** Changes the notes, those of another stream that has changed them meanwhile included. Throws ABORTED where that happens all the time. */
  async change(edit: (notes: ClientNotes) => void): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const next = clone(ClientNotesSchema, this.#notes);
      edit(next);
      const put = { session: this.#session, key: CLIENT, value: toBinary(ClientNotesSchema, next), replaces: this.#version };
      const { kind, version } = await this.#store.put(put);
      if (kind === "kept") return this.#take(next, version);
      const note = await this.#store.get(this.#session, CLIENT);
      if (note !== undefined) this.#take(decoded(note.value), note.version);
    }
    throw new HoldfastError("aborted", "session: its notes changed too often meanwhile; try again");
  }

  #take(notes: ClientNotes, version: number): void {
    this.#notes = notes;
    this.#version = version;
  }

  /** The system context that is for the turn which begins at `head`. */
  pendingContext(head: number): string | undefined {
    const { systemContext, systemContextUsedAt: usedAt } = this.#notes;
    return usedAt !== undefined && BigInt(head) > usedAt ? undefined : systemContext;
  }
}

function decoded(bytes: Uint8Array): ClientNotes {
  try {
    return fromBinary(ClientNotesSchema, bytes);
  } catch (error) {
    throw new HoldfastError("data_loss", "session: the notes beside it cannot be read; restore the file from a copy", { cause: error });
  }
}

/** Adds feedback to a session's. False where there is as much as is kept. */
export async function addFeedback(store: NoteStore, session: SessionUid, feedback: FeedbackNote, entriesMax: number): Promise<boolean> {
  const value = toBinary(FeedbackNoteSchema, feedback);
  return (await store.append({ session, list: FEEDBACK, value, entriesMax })) !== undefined;
}

/** The feedback of a session behind the place `after`, in order. */
export async function readFeedback(
  store: NoteStore,
  session: SessionUid,
  page: { readonly after: number; readonly limit: number },
): Promise<readonly { readonly place: number; readonly feedback: FeedbackNote }[]> {
  const entries = await store.entries({ session, list: FEEDBACK, ...page });
  return entries.map(({ place, value }) => ({ place, feedback: fromBinary(FeedbackNoteSchema, value) }));
}
