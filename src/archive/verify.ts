/**
 * Verification of an export without a server: every hash and link of every session, forks against the records they share, heads,
 * and signatures.
 *
 * Invariants:
 * - It goes on after a fault where it can: what is right is told beside what is not.
 * - What no hash and no signature covers cannot be verified: a session's facts (labels, names, model), fences, and what is kept
 *   beside records. Without a signed head that was kept elsewhere, nobody can tell that a whole file was made anew.
 */

import type { SessionUid } from "../base/ids.ts";
import type { Digest, SignatureCheck } from "../base/ports.ts";
import type { SignedHead } from "../gen/holdfast/v1/export_pb.ts";
import type { ChainFault, Head } from "../journal/index.ts";
import { inheritedSeqOf, isMalformed, ownRecordsOf, type ArchiveItem, type SessionFacts } from "./item.ts";
import { ArchiveOutline } from "./outline.ts";
import { SessionProgress, SessionWalk } from "./progress.ts";
import { checkSignature } from "./signed-head.ts";
import type { TrustedKeys } from "./trusted-keys.ts";

/**
 * What can be wrong with an export:
 * - `format`: it cannot be read, or its pieces do not fit together
 * - `chain`: a record is not what its hash says, or does not link to the one before it
 * - `truncated`: records are missing at the end of a session
 * - `rebuilt`: the last record is not the one that the head names
 * - `outdated`: the head is older than the last record
 * - `forged`: a signature is not that of its key over its head
 * - `unsigned`, `untrusted`: with a list of trusted keys only: the head has no signature, or that of another key
 */
export type ArchiveFaultKind = "format" | "chain" | "truncated" | "rebuilt" | "outdated" | "forged" | "unsigned" | "untrusted";

/** One thing that is wrong. */
export interface ArchiveFault {
  readonly kind: ArchiveFaultKind;
  /** Whose it is; undefined for the file's. */
  readonly session: SessionUid | undefined;
  /** In words, without content. */
  readonly message: string;
  /** Set for `chain`, where the place is known. */
  readonly chain?: ChainFault | undefined;
}

/** Who vouches for a session's head. */
export type HeadTrust =
  | { readonly kind: "unsigned" }
  /** The signature is right. `isTrusted` is undefined where nobody said which keys are. */
  | { readonly kind: "signed"; readonly fingerprint: string; readonly timeMs: number; readonly isTrusted: boolean | undefined };

/** What was found of one session. */
export interface SessionVerdict {
  readonly facts: SessionFacts;
  /** Its own records that are right. */
  readonly records: number;
  /** The last record that is right; undefined when nothing is known to be. */
  readonly head: Head | undefined;
  readonly trust: HeadTrust;
  readonly isIntact: boolean;
}

/** The outcome of a verification. */
export interface ArchiveVerdict {
  readonly isIntact: boolean;
  readonly sessions: readonly SessionVerdict[];
  /** All records that came. */
  readonly records: number;
  readonly faults: readonly ArchiveFault[];
}

/** What verifying needs. */
export interface ArchiveVerifierOptions {
  readonly digest: Digest;
  readonly signatures: SignatureCheck;
  /** With it, every session must be signed by one of these keys. */
  readonly trusted?: TrustedKeys | undefined;
  /** Heads that were kept elsewhere, by session: what is in the export must reach as far, or be the same record there. */
  readonly kept?: ReadonlyMap<string, SignedHead> | undefined;
}

/** Verifies an export, item by item. */
export class ArchiveVerifier {
  readonly #options: ArchiveVerifierOptions;
  readonly #outline = new ArchiveOutline();
  readonly #walk: SessionWalk;
  readonly #sessions: SessionVerdict[] = [];
  readonly #faults: ArchiveFault[] = [];
  #records = 0;
  #isLost = false;

  constructor(options: ArchiveVerifierOptions) {
    this.#options = options;
    const open = (session: ConstructorParameters<typeof SessionProgress>[0]) => new SessionProgress(session, this.#outline, options.digest);
    this.#walk = new SessionWalk(this.#outline, open, (progress) => this.#close(progress));
  }

  /** Takes the next item. */
  push(item: ArchiveItem): void {
    if (this.#isLost) return;
    this.#guard(() => {
      this.#outline.admit(item);
      if (item.kind === "record") this.#records += 1;
      if (item.kind === "end") this.#walk.finish();
      if (item.kind !== "record" && item.kind !== "aside" && item.kind !== "head") return;
      const uid = item.kind === "head" ? (item.head.session as SessionUid) : item.session;
      const progress = this.#walk.at(this.#outline.session(uid));
      progress.push(item);
      if (item.kind === "record") this.#compareKept(progress);
    });
  }

  /** A head that was kept elsewhere must be the record that has come to its place. */
  #compareKept({ session, head }: SessionProgress): void {
    const { uid } = session.facts.seed;
    const kept = this.#options.kept?.get(uid);
    if (head === undefined || kept === undefined || kept.seq !== BigInt(head.seq) || kept.contentHash === head.hash) return;
    const message = `record ${head.seq} is not the one that the head that was kept names: the chain was built anew`;
    this.#faults.push({ kind: "rebuilt", session: uid, message });
  }

  /** Notes that the file cannot be read on. */
  fail(error: unknown): void {
    this.#guard(() => {
      throw error;
    });
  }

  /** The verdict on all that came. */
  finish(): ArchiveVerdict {
    if (!this.#isLost) {
      this.#guard(() => this.#walk.finish());
      this.#guard(() => this.#outline.finish());
    }
    const faults = this.#faults;
    return { isIntact: faults.length === 0, sessions: this.#sessions, records: this.#records, faults };
  }

  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      if (!isMalformed(error)) throw error;
      this.#isLost = true;
      this.#faults.push({ kind: "format", session: undefined, message: error.message });
    }
  }

  #close(progress: SessionProgress): void {
    const { facts } = progress.session;
    const before = this.#faults.length;
    const fault = (kind: ArchiveFaultKind, message: string, chain?: ChainFault): void => {
      this.#faults.push({ kind, session: facts.seed.uid, message, chain });
    };
    checkRecords(progress, fault);
    const trust = facts.prefixOnly ? ({ kind: "unsigned" } as const) : this.#checkHead(progress, fault);
    this.#sessions.push({
      facts,
      records: progress.head === undefined ? 0 : progress.head.seq - inheritedSeqOf(facts),
      head: progress.head,
      trust,
      isIntact: this.#faults.length === before,
    });
  }

  #checkHead(progress: SessionProgress, fault: AddFault): HeadTrust {
    const { named } = progress;
    const { trusted, kept } = this.#options;
    if (named === undefined) {
      fault("truncated", "its head is missing");
      return { kind: "unsigned" };
    }
    compareHead(progress, named, fault);
    const keptSeq = kept?.get(named.session)?.seq ?? 0n;
    if (keptSeq > BigInt(progress.lastSeq)) fault("truncated", missing(progress, Number(keptSeq), "the head that was kept"));
    const signature = checkSignature(named, this.#options.digest, this.#options.signatures);
    switch (signature.kind) {
      case "none":
        if (trusted !== undefined) fault("unsigned", "its head has no signature");
        return { kind: "unsigned" };
      case "wrong":
        fault("forged", "the signature of its head is not that of the key that it names");
        return { kind: "unsigned" };
      case "right": {
        const isTrusted = trusted?.trusts(signature.fingerprint);
        if (isTrusted === false) fault("untrusted", `its head is signed by the key ${named.keyId}, which is not one of the trusted keys`);
        return { kind: "signed", fingerprint: signature.fingerprint, timeMs: signature.timeMs, isTrusted };
      }
    }
  }
}

type AddFault = (kind: ArchiveFaultKind, message: string, chain?: ChainFault) => void;

function checkRecords(progress: SessionProgress, fault: AddFault): void {
  const { facts } = progress.session;
  if (progress.fault !== undefined) {
    fault("chain", `record ${progress.fault.seq} breaks the chain`, progress.fault);
    return;
  }
  if (progress.head === undefined) {
    fault("chain", `its parent's record ${facts.parent?.forkSeq} is not right, so nothing can be said of its own`);
    return;
  }
  const expected = ownRecordsOf(facts);
  if (progress.records > expected) fault("chain", `it has records after ${facts.lastSeq}, which is to be its last`);
  if (progress.records < expected) fault("truncated", `${rangeText(progress.lastSeq + 1, facts.lastSeq)} missing`);
}

/** What the file's own head says against what is there. */
function compareHead(progress: SessionProgress, named: SignedHead, fault: AddFault): void {
  const { head, lastSeq } = progress;
  if (named.seq > BigInt(lastSeq)) return fault("truncated", missing(progress, Number(named.seq), "the head"));
  if (named.seq < BigInt(lastSeq)) {
    const uncovered = rangeText(Number(named.seq) + 1, lastSeq, "");
    return fault("outdated", `the head is record ${named.seq}, older than the last one: it does not cover ${uncovered}`);
  }
  if (head === undefined || head.seq !== lastSeq || named.contentHash === head.hash) return;
  fault("rebuilt", `record ${lastSeq} is not the one that the head names: the chain was built anew`);
}

function missing({ lastSeq }: SessionProgress, headSeq: number, what: string): string {
  return `${rangeText(lastSeq + 1, headSeq)} missing: ${what} is record ${headSeq}`;
}

function rangeText(from: number, to: number, verb = from >= to ? " is" : " are"): string {
  return from >= to ? `record ${from}${verb}` : `records ${from} to ${to}${verb}`;
}
