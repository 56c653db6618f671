/**
 * One session of an export, record by record: what verifying and importing have in common.
 *
 * Invariant: a record counts as right only if every one before it was, up to the first of the lineage.
 */

import type { Seq } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import type { SignedHead } from "../gen/holdfast/v1/export_pb.ts";
import { checkRecord, type ChainFault, type Head } from "../journal/index.ts";
import { inheritedSeqOf, malformed, type ArchiveItem } from "./item.ts";
import type { ArchiveOutline, OutlinedSession } from "./outline.ts";

/** An item that belongs to one session. */
export type SessionItem = Extract<ArchiveItem, { kind: "record" | "aside" | "head" }>;

/** The reading of one session. */
export class SessionProgress {
  readonly session: OutlinedSession;
  /** The last record that is right; undefined when not even the one before the session's own is known to be. */
  head: Head | undefined;
  /** The first fault of the chain. */
  fault: ChainFault | undefined;
  /** How many records came, right or not. */
  records = 0;
  /** What the export says the head is. */
  named: SignedHead | undefined;
  readonly #outline: ArchiveOutline;
  readonly #digest: Digest;
  #mayHaveAside = false;

  constructor(session: OutlinedSession, outline: ArchiveOutline, digest: Digest) {
    this.session = session;
    this.head = outline.baseOf(session);
    this.#outline = outline;
    this.#digest = digest;
  }

  /** The seq of the last record that came, be it right or not. */
  get lastSeq(): Seq {
    return (inheritedSeqOf(this.session.facts) + this.records) as Seq;
  }

  /** Takes the session's next item. Throws INVALID_ARGUMENT about the file for one that may not stand there. */
  push(item: SessionItem): void {
    if (this.named !== undefined) throw malformed(this.#outline.where, "follows the head of its session");
    switch (item.kind) {
      case "record":
        this.#record(item.bytes);
        return;
      case "aside":
        if (!this.#mayHaveAside || item.seq !== this.lastSeq) {
          throw malformed(this.#outline.where, "must stand behind the record that it is beside");
        }
        this.#mayHaveAside = false;
        return;
      case "head":
        if (this.session.facts.prefixOnly) throw malformed(this.#outline.where, "is the head of a session of which only a prefix is here");
        this.named = item.head;
    }
  }

  #record(bytes: Uint8Array): void {
    this.records += 1;
    this.#mayHaveAside = true;
    if (this.head === undefined || this.fault !== undefined) return;
    const checked = checkRecord(bytes, this.head, this.#digest);
    if (checked.kind === "broken") {
      this.fault = checked.fault;
      return;
    }
    this.head = checked.head;
    this.#outline.note(this.session.facts.seed.uid, checked.head);
  }
}

/** Leads an export's items, session by session. */
export class SessionWalk {
  readonly #outline: ArchiveOutline;
  readonly #open: (session: OutlinedSession) => SessionProgress;
  readonly #close: (progress: SessionProgress) => void;
  #current: SessionProgress | undefined;
  #next = 0;

  /** `open` and `close` are called once for every session, in order, those without an item included. */
  constructor(outline: ArchiveOutline, open: (session: OutlinedSession) => SessionProgress, close: (progress: SessionProgress) => void) {
    this.#outline = outline;
    this.#open = open;
    this.#close = close;
  }

  /** The session that the item belongs to. */
  at(session: OutlinedSession): SessionProgress {
    if (session.index + 1 < this.#next) throw malformed(this.#outline.where, "belongs to a session that is over");
    let current = this.#current;
    while (current === undefined || current.session.index < session.index) current = this.#advance();
    return current;
  }

  /** Closes what is open and every session after it. */
  finish(): void {
    while (this.#next < this.#outline.sessions.length) this.#advance();
    if (this.#current !== undefined) this.#close(this.#current);
    this.#current = undefined;
  }

  #advance(): SessionProgress {
    if (this.#current !== undefined) this.#close(this.#current);
    this.#current = this.#open(this.#outline.sessions[this.#next++]!);
    return this.#current;
  }
}
