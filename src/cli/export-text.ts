/** What was found in an export, for people and for scripts. Pure. */

import { KEY_ID_DIGITS, type ArchiveFault, type ArchiveVerdict, type HeadTrust, type SessionVerdict } from "../archive/index.ts";
import type { ChainFaultKind } from "../journal/index.ts";
import { plainLine } from "./plain.ts";

/** How a chain fails, in words. */
const CHAIN_WORDS: Readonly<Record<ChainFaultKind, string>> = {
  seq: "its seq is not the next one",
  "prev-hash": "it does not link to the record before it",
  "content-hash": "its content is not what was hashed",
  unreadable: "it cannot be read",
  head: "it is not the head",
};

/** A verdict in lines. */
export function exportLines({ isIntact, sessions, records, faults }: ArchiveVerdict): readonly string[] {
  const counts = `${counted(records, "record")} in ${counted(sessions.length, "session")}`;
  return [`${isIntact ? "intact" : "broken"}  ${counts}`, ...sessions.map(sessionLine), ...faults.flatMap(faultLines)];
}

function sessionLine({ facts, records, head, trust, isIntact }: SessionVerdict): string {
  const what = facts.prefixOnly ? "prefix" : isIntact ? "intact" : "broken";
  const end = head === undefined || head.seq === 0 ? "" : `  head ${head.seq}  sha256 ${head.hash}`;
  return `${what}  session ${plainLine(facts.seed.uid)}  ${counted(records, "record")}${end}${trustText(trust)}`;
}

function trustText(trust: HeadTrust): string {
  if (trust.kind === "unsigned") return "";
  const by = `  signed by ${trust.fingerprint.slice(0, KEY_ID_DIGITS)} at ${new Date(trust.timeMs).toISOString()}`;
  if (trust.isTrusted === undefined) return by;
  return trust.isTrusted ? `${by}, trusted` : `${by}, not trusted`;
}

function faultLines({ session, message, chain }: ArchiveFault): readonly string[] {
  const whose = session === undefined ? "" : `session ${plainLine(session)}: `;
  if (chain === undefined) return [`        ${whose}${plainLine(message)}`];
  return [
    `        ${whose}${plainLine(message)}: ${CHAIN_WORDS[chain.kind]}`,
    `          expected ${plainLine(chain.expected)}`,
    `          found    ${plainLine(chain.found)}`,
  ];
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** A verdict as JSON. */
export function exportJson({ isIntact, sessions, records, faults }: ArchiveVerdict): object {
  return {
    intact: isIntact,
    records: `${records}`,
    sessions: sessions.map(({ facts, records: own, head, trust, isIntact: isSound }) => ({
      uid: facts.seed.uid,
      prefix_only: facts.prefixOnly,
      intact: isSound,
      records: `${own}`,
      head_seq: `${head?.seq ?? 0}`,
      head_hash: head?.hash ?? "",
      signature: trust.kind === "unsigned" ? undefined : signatureJson(trust),
    })),
    faults: faults.map(({ kind, session, message, chain }) => ({
      kind,
      session,
      message,
      seq: chain === undefined ? undefined : `${chain.seq}`,
      expected: chain?.expected,
      found: chain?.found,
    })),
  };
}

function signatureJson({ fingerprint, timeMs, isTrusted }: Extract<HeadTrust, { kind: "signed" }>): object {
  return { key_id: fingerprint.slice(0, KEY_ID_DIGITS), fingerprint, time: new Date(timeMs).toISOString(), trusted: isTrusted };
}
