/**
 * Importing: the sessions of an export into a journal.
 *
 * Invariants:
 * - Nothing can be used before everything was verified: hashes, links, forks, heads, signatures, and that no uid or name is taken. New
 *   sessions become usable in one transaction, all or none.
 * - Records are kept byte for byte, fences included; the next writer's fence is above them.
 * - A failed import removes what it made. One that was killed is repeated: it goes on from what is there. What nobody repeats is
 *   reclaimed later.
 * - It needs memory for one page of records, whatever the length of the export.
 */

import { HoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { Digest, SignatureCheck } from "../base/ports.ts";
import type { JournalStore, SessionRow } from "../journal/index.ts";
import { ArchiveDecoder } from "./decoder.ts";
import { malformed, ownRecordsOf, type ArchiveItem, type SessionFacts } from "./item.ts";
import { Landing, requireLandable, type LandingOutcome } from "./landing.ts";
import { ArchiveOutline } from "./outline.ts";
import { SessionProgress, SessionWalk, type SessionItem } from "./progress.ts";
import { checkSignature } from "./signed-head.ts";

/** What importing needs. */
export interface ImportContext {
  readonly journal: JournalStore;
  readonly digest: Digest;
  readonly signatures: SignatureCheck;
}

/** How to import. */
export interface ImportOptions {
  /** Asked for every session before any record is taken; throws for one that must not be imported. */
  readonly allow?: ((facts: SessionFacts) => Promise<void>) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** One session after an import. */
export interface ImportedSession {
  readonly uid: SessionUid;
  readonly outcome: LandingOutcome;
  readonly lastSeq: number;
  readonly headHash: string;
}

/** What an import did. */
export interface ImportReport {
  readonly sessions: readonly ImportedSession[];
  readonly recordsAdded: number;
}

/**
 * Imports an export in either form, its bytes cut anywhere. Throws INVALID_ARGUMENT where it is broken or no export, ALREADY_EXISTS
 * where a uid or a name is taken, FAILED_PRECONDITION where a session was deleted here, ABORTED where something changed meanwhile,
 * RESOURCE_EXHAUSTED over a limit.
 */
export async function importSessions(
  context: ImportContext,
  chunks: AsyncIterable<Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const importing = new Import(context, options);
  try {
    const decoder = new ArchiveDecoder();
    for await (const chunk of chunks) {
      options.signal?.throwIfAborted();
      for (const item of decoder.push(chunk)) await importing.take(item);
    }
    options.signal?.throwIfAborted();
    for (const item of decoder.finish()) await importing.take(item);
    return await importing.complete();
  } catch (error) {
    await importing.undo();
    throw error;
  }
}

class Import {
  readonly #context: ImportContext;
  readonly #options: ImportOptions;
  readonly #outline = new ArchiveOutline();
  readonly #walk: SessionWalk;
  /** Sessions whose items have all come and that were not settled yet. */
  #over: SessionProgress[] = [];
  /** What is here of each session; undefined before all sessions of the export are known. */
  #rows: ReadonlyMap<SessionUid, SessionRow | undefined> | undefined;
  readonly #landings = new Map<SessionUid, Landing>();

  constructor(context: ImportContext, options: ImportOptions) {
    this.#context = context;
    this.#options = options;
    this.#walk = new SessionWalk(
      this.#outline,
      (session) => new SessionProgress(session, this.#outline, context.digest),
      (progress) => this.#over.push(progress),
    );
  }

  async take(item: ArchiveItem): Promise<void> {
    this.#outline.admit(item);
    switch (item.kind) {
      case "header":
      case "session":
        return;
      case "record":
      case "aside":
        return this.#takeOf(item.session, item);
      case "head":
        return this.#takeOf(item.head.session as SessionUid, item);
      case "end":
        this.#rows ??= await this.#present();
        this.#walk.finish();
        return this.#settle();
    }
  }

  /** Lets the new sessions be used. */
  async complete(): Promise<ImportReport> {
    this.#outline.finish();
    const { journal } = this.#context;
    const whole = this.#outline.sessions.filter(({ facts }) => !facts.prefixOnly).map(({ facts }) => facts.seed.uid);
    const outcome = await journal.complete(whole);
    if (outcome.kind === "name-taken") {
      throw new HoldfastError("already_exists", `session ${outcome.session}: a session of its project has its name`);
    }
    if (outcome.kind === "not-found") {
      throw new HoldfastError("aborted", `session ${outcome.session}: it was reclaimed while it was imported; retry`);
    }
    const sessions = await Promise.all([...this.#landings.values()].map((landing) => this.#imported(landing)));
    const recordsAdded = [...this.#landings.values()].reduce((sum, { added }) => sum + added, 0);
    return { sessions, recordsAdded };
  }

  /** Removes the sessions that this import made, children first. What cannot be removed now is left to the sweeper. */
  async undo(): Promise<void> {
    const created = [...this.#landings.values()].filter((landing) => landing.created).reverse();
    try {
      for (const { session } of created) while ((await this.#context.journal.reclaim(session)).kind === "more");
    } catch {
      // The error that ended the import is the one to tell.
    }
  }

  async #imported({ session, outcome }: Landing): Promise<ImportedSession> {
    const row = await this.#context.journal.get(session);
    return { uid: session, outcome, lastSeq: row?.projection.lastSeq ?? 0, headHash: row?.projection.headHash ?? "" };
  }

  async #takeOf(session: SessionUid, item: SessionItem): Promise<void> {
    this.#rows ??= await this.#present();
    const progress = this.#walk.at(this.#outline.session(session));
    if (this.#over.length > 0) await this.#settle();
    progress.push(item);
    requireSound(progress);
    if (item.kind === "record") await this.#landing(progress).record(item.bytes);
    if (item.kind === "aside") this.#landing(progress).aside(item.bytes);
  }

  /** Everything about the sessions that can be found wrong before a record is taken. */
  async #present(): Promise<ReadonlyMap<SessionUid, SessionRow | undefined>> {
    const rows = new Map<SessionUid, SessionRow | undefined>();
    for (const { facts } of this.#outline.sessions) {
      await this.#options.allow?.(facts);
      const row = await this.#context.journal.get(facts.seed.uid, { signal: this.#options.signal });
      requireLandable(row, facts);
      rows.set(facts.seed.uid, row);
    }
    return rows;
  }

  #landing({ session, head }: SessionProgress): Landing {
    const { uid } = session.facts.seed;
    const known = this.#landings.get(uid);
    if (known !== undefined) return known;
    const base = this.#outline.baseOf(session) ?? head ?? { seq: 0 as never, hash: "" };
    const landing = new Landing(this.#context.journal, session.facts, this.#rows?.get(uid), base);
    this.#landings.set(uid, landing);
    return landing;
  }

  async #settle(): Promise<void> {
    for (const progress of this.#over.splice(0)) {
      requireSound(progress);
      this.#requireEnd(progress);
      await this.#landing(progress).settle();
    }
  }

  #requireEnd({ session, records, head, named, lastSeq }: SessionProgress): void {
    const { facts } = session;
    if (records !== ownRecordsOf(facts)) throw wrong(facts, `has ${records} records of its own where ${ownRecordsOf(facts)} are to be`);
    if (facts.prefixOnly) return;
    if (named === undefined) throw wrong(facts, "has no head");
    if (named.seq !== BigInt(lastSeq) || named.contentHash !== head?.hash) throw wrong(facts, "does not end at its head");
    if (checkSignature(named, this.#context.digest, this.#context.signatures).kind === "wrong")
      throw wrong(facts, "has a head with a wrong signature");
  }
}

function requireSound({ session, fault, head }: SessionProgress): void {
  if (fault !== undefined) throw wrong(session.facts, `breaks its chain at record ${fault.seq} (${fault.kind})`);
  if (head === undefined) throw wrong(session.facts, "hangs on a record that is not there");
}

function wrong({ seed }: SessionFacts, what: string): HoldfastError {
  return malformed(`session ${seed.uid}`, what);
}
