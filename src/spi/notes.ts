/**
 * Notes beside sessions: what a host has to remember of a session and the journal has no record for, such as the tools that its client
 * registered.
 *
 * Invariants:
 * - What was acknowledged is there after a crash.
 * - Of two who change one note at a time, one is told of the other.
 * - Notes go with their session; nothing of a session's history rests on them.
 */

import type { SessionUid } from "../base/ids.ts";

/** What is kept under a key. */
export interface Note {
  readonly value: Uint8Array;
  /** Counts its changes, from 1. */
  readonly version: number;
}

/** What became of a change; `version` is that of the note as it is now, 0 where there is none. */
export interface NoteChange {
  readonly kind: "kept" | "conflict";
  readonly version: number;
}

/** A change of a note. */
export interface NotePut {
  readonly session: SessionUid;
  readonly key: string;
  readonly value: Uint8Array;
  /** The version that is replaced; 0 where there is none yet. */
  readonly replaces: number;
}

/** An entry of a list. */
export interface NoteEntry {
  /** Its place in the list, from 1. */
  readonly place: number;
  readonly value: Uint8Array;
}

/** Keeps notes. Faults are HoldfastErrors. */
export interface NoteStore extends AsyncDisposable {
  /** The note under `key`; undefined where there is none. */
  get(session: SessionUid, key: string): Promise<Note | undefined>;
  /** Replaces a note, where the version that is there is the one to be replaced. */
  put(put: NotePut): Promise<NoteChange>;
  /** Adds an entry to a list; its place, or undefined where the list has `entriesMax` already. */
  append(entry: {
    readonly session: SessionUid;
    readonly list: string;
    readonly value: Uint8Array;
    readonly entriesMax: number;
  }): Promise<number | undefined>;
  /** Entries behind the place `after`, in order. */
  entries(page: {
    readonly session: SessionUid;
    readonly list: string;
    readonly after: number;
    readonly limit: number;
  }): Promise<readonly NoteEntry[]>;
  /** Removes everything of a session. */
  remove(session: SessionUid): Promise<void>;
}
