/**
 * The completions that models are making on this host, as far as they have come. Never journaled, hashed or replayed.
 *
 * Invariants:
 * - A completion is here from its first chunk until it has ended, whoever watches: a watcher that comes late is given it from its beginning.
 * - What is handed out is not changed later.
 */

import type { Seq, SessionUid } from "../base/ids.ts";
import { PartialText } from "./partial-text.ts";

/** A completion that is not on record yet. */
export interface PartialCompletion {
  readonly executionId: string;
  /** The last record before it; its OUTPUT is a later one. */
  readonly afterSeq: Seq;
  /** What has come, by the parts of its message. */
  readonly pieces: readonly PartialPiece[];
}

/** What has come of one part. A last character that takes two units may be there in half. */
export interface PartialPiece {
  readonly kind: "text" | "reasoning";
  /** The part of the message, from 0. */
  readonly partIndex: number;
  readonly text: PartialText;
}

/** A chunk of a completion. */
export interface PartialChunk extends Omit<PartialPiece, "text"> {
  readonly text: string;
}

/** Called when more has come; must not throw and must return quickly. */
export type PartialListener = () => void;

/** The completions in progress, one a session. */
export class Partials {
  readonly #bySession = new Map<SessionUid, PartialCompletion>();
  readonly #listeners = new Map<SessionUid, Set<PartialListener>>();

  /** What has come of the session's completion; undefined where none is being made. */
  of(session: SessionUid): PartialCompletion | undefined {
    return this.#bySession.get(session);
  }

  /** Adds a chunk. The first one of a completion says where it belongs. */
  add(session: SessionUid, place: Omit<PartialCompletion, "pieces">, chunk: PartialChunk): void {
    const before = this.#bySession.get(session)?.pieces ?? [];
    this.#bySession.set(session, { ...place, pieces: withChunk(before, chunk) });
    for (const listener of this.#listeners.get(session) ?? []) listener();
  }

  /** The completion has ended, whole or not. */
  end(session: SessionUid): void {
    this.#bySession.delete(session);
  }

  /** Listens until the returned function is called. */
  listen(session: SessionUid, listener: PartialListener): () => void {
    const listeners = this.#listeners.get(session) ?? new Set<PartialListener>();
    listeners.add(listener);
    this.#listeners.set(session, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(session) === listeners) this.#listeners.delete(session);
    };
  }
}

function withChunk(pieces: readonly PartialPiece[], chunk: PartialChunk): readonly PartialPiece[] {
  const index = pieces.findIndex(({ kind, partIndex }) => kind === chunk.kind && partIndex === chunk.partIndex);
  const known = pieces[index];
  if (known === undefined) return [...pieces, { ...chunk, text: PartialText.of(chunk.text) }];
  return pieces.with(index, { ...known, text: known.text.with(chunk.text) });
}
