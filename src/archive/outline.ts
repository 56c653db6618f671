/**
 * The outline of an export: which sessions it has and how they hang together, checked item by item.
 *
 * Invariants:
 * - Order is as documented: header, sessions (parents first), then session by session its records, each aside behind its record, and
 *   its head; then the end. Anything else is refused, so nothing can stand where no check looks.
 * - All that is kept is the sessions and the hashes at which others fork off, whatever the number of records.
 */

import type { Seq, SessionUid } from "../base/ids.ts";
import type { Head } from "../journal/index.ts";
import { inheritedSeqOf, malformed, type ArchiveItem, type SessionFacts } from "./item.ts";
import { ARCHIVE_SESSIONS_MAX, ARCHIVE_VERSION } from "./limits.ts";

/** A session of an export as far as it was read. */
export interface OutlinedSession {
  readonly facts: SessionFacts;
  /** The position in the export. */
  readonly index: number;
}

/** Checks the order of an export's items. Every method throws INVALID_ARGUMENT about the file. */
export class ArchiveOutline {
  readonly #sessions: OutlinedSession[] = [];
  readonly #byUid = new Map<SessionUid, OutlinedSession>();
  /** Of each session, the seqs of its own records at which others fork off. */
  readonly #forkSeqs = new Map<SessionUid, Set<Seq>>();
  /** The hashes at these, by session and seq. */
  readonly #hashes = new Map<string, string>();
  #stage: "start" | "sessions" | "records" | "end" = "start";
  #items = 0;
  #records = 0;

  get sessions(): readonly OutlinedSession[] {
    return this.#sessions;
  }

  get isEnded(): boolean {
    return this.#stage === "end";
  }

  /** The place of the last item, for messages. */
  get where(): string {
    return `item ${this.#items}`;
  }

  /** Counts an item and takes in those that are not of one session. */
  admit(item: ArchiveItem): void {
    this.#items += 1;
    if (this.#stage === "end") throw malformed(this.where, "follows the end");
    if ((item.kind === "header") !== (this.#stage === "start")) {
      throw malformed(this.where, this.#stage === "start" ? "must be the header of an export" : "is a second header");
    }
    switch (item.kind) {
      case "header":
        if (item.version !== ARCHIVE_VERSION)
          throw malformed(this.where, `must have version ${ARCHIVE_VERSION}, the one that is known here`);
        this.#stage = "sessions";
        return;
      case "session":
        if (this.#stage !== "sessions") throw malformed(this.where, "is a session behind records");
        return this.#addSession(item.facts);
      case "record":
        this.#records += 1;
        this.#stage = "records";
        return;
      case "aside":
      case "head":
        this.#stage = "records";
        return;
      case "end":
        return this.#end(item.sessions, item.records);
    }
  }

  /** The session with this uid. */
  session(uid: SessionUid): OutlinedSession {
    const session = this.#byUid.get(uid);
    if (session === undefined) throw malformed(this.where, "belongs to no session of this export");
    return session;
  }

  /** Notes the hash of a record that its session wrote, if another forks off there. */
  note(session: SessionUid, head: Head): void {
    if (this.#forkSeqs.get(session)?.has(head.seq) === true) this.#hashes.set(hashKey(session, head.seq), head.hash);
  }

  /** The head before a session's own records; undefined when its parent's record there is not known to be right. */
  baseOf({ facts }: OutlinedSession): Head | undefined {
    const seq = inheritedSeqOf(facts);
    if (facts.parent === undefined) return { seq, hash: "" };
    const owner = this.#ownerOf(facts.parent.uid, seq);
    const hash = this.#hashes.get(hashKey(owner, seq));
    return hash === undefined ? undefined : { seq, hash };
  }

  /** Throws unless the file has come to its end. */
  finish(): void {
    if (this.#stage !== "end") throw malformed("", this.#items === 0 ? "is empty" : "is cut off: its end is missing");
  }

  #addSession(facts: SessionFacts): void {
    const { uid } = facts.seed;
    if (this.#byUid.has(uid)) throw malformed(this.where, "is a session that came before");
    if (this.#sessions.length >= ARCHIVE_SESSIONS_MAX) throw malformed(this.where, `is one session more than ${ARCHIVE_SESSIONS_MAX}`);
    if (facts.parent !== undefined) this.#addFork(facts.parent.uid, facts);
    const session = { facts, index: this.#sessions.length };
    this.#sessions.push(session);
    this.#byUid.set(uid, session);
  }

  #addFork(parent: SessionUid, facts: SessionFacts): void {
    const found = this.#byUid.get(parent);
    if (found === undefined) throw malformed(this.where, "is a fork whose parent did not come before it");
    const seq = inheritedSeqOf(facts);
    if (seq < 1 || seq > found.facts.lastSeq) throw malformed(this.where, "is a fork at a record that its parent does not have here");
    if (!facts.prefixOnly && seq !== facts.parent?.forkSeq) throw malformed(this.where, "is a fork that ends before its own first record");
    const owner = this.#ownerOf(parent, seq);
    const seqs = this.#forkSeqs.get(owner) ?? new Set();
    this.#forkSeqs.set(owner, seqs.add(seq));
  }

  /** The session of the line from `uid` up that wrote the record at `seq`. */
  #ownerOf(uid: SessionUid, seq: Seq): SessionUid {
    let owner = uid;
    for (let parent = this.#byUid.get(owner)?.facts.parent; parent !== undefined && seq <= parent.forkSeq;) {
      owner = parent.uid;
      parent = this.#byUid.get(owner)?.facts.parent;
    }
    return owner;
  }

  #end(sessions: number, records: number): void {
    if (this.#stage === "start" || sessions !== this.#sessions.length) throw malformed(this.where, "counts other sessions than there are");
    if (records !== this.#records) throw malformed(this.where, "counts other records than there are");
    this.#stage = "end";
  }
}

function hashKey(session: SessionUid, seq: Seq): string {
  return `${seq} ${session}`;
}
