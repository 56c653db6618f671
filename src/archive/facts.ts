/** A session's facts as the contract's Session, which is how an export holds them. */

import { create, equals } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "../base/errors.ts";
import { seqOf, sessionUidOf } from "../base/ids.ts";
import { SessionSchema, type Session } from "../gen/agentsessions/v1/session_pb.ts";
import { ExportedSessionSchema, type ExportedSession } from "../gen/holdfast/v1/export_pb.ts";
import type { SessionSeed } from "../journal/index.ts";
import type { SessionFacts } from "./item.ts";

/** The message of a session's facts. Maps are in the order of their keys, so that equal facts are equal bytes. */
export function exportedOf(facts: SessionFacts): ExportedSession {
  return create(ExportedSessionSchema, { session: sessionOfFacts(facts), prefixOnly: facts.prefixOnly });
}

/** The facts in a message. Throws INVALID_ARGUMENT that says what is wrong with it. */
export function factsOf(exported: ExportedSession): SessionFacts {
  const { session, prefixOnly } = exported;
  const facts = { ...readFacts(session ?? create(SessionSchema)), prefixOnly };
  // A field that no fact has would be lost without a word.
  if (session === undefined || !equals(SessionSchema, session, sessionOfFacts(facts))) {
    throw invalidArgument("session", "has fields that an export has no place for");
  }
  return facts;
}

function sessionOfFacts({ seed, parent, lastSeq }: SessionFacts): Session {
  const { uid, project, name, harness, model, identity, origin, labels, annotations, createTimeMs } = seed;
  const session = create(SessionSchema, {
    metadata: { uid, project, name, createTime: timestampFromMs(createTimeMs) },
    harness,
    model,
    lastSeq: BigInt(lastSeq),
    labels: sortedMap(labels),
    annotations: sortedMap(annotations),
  });
  if (identity !== undefined) session.identity = identity;
  if (origin !== undefined) session.origin = { ...origin, attributes: sortedMap(origin.attributes) };
  if (parent !== undefined) {
    session.parentUid = parent.uid;
    session.forkSeq = BigInt(parent.forkSeq);
  }
  return session;
}

function readFacts(session: Session): Omit<SessionFacts, "prefixOnly"> {
  const { metadata, harness, model, identity, origin, labels, annotations } = session;
  const seed: SessionSeed = {
    uid: sessionUidOf(metadata?.uid ?? "", "uid"),
    project: metadata?.project ?? "",
    name: metadata?.name ?? "",
    harness,
    model,
    identity,
    origin,
    labels: { ...labels },
    annotations: { ...annotations },
    createTimeMs: metadata?.createTime === undefined ? 0 : timestampMs(metadata.createTime),
  };
  const parent = session.parentUid === "" ? undefined : { uid: sessionUidOf(session.parentUid), forkSeq: seqOf(session.forkSeq) };
  return { seed, parent, lastSeq: seqOf(session.lastSeq) };
}

function sortedMap(map: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).toSorted(([left], [right]) => (left < right ? -1 : 1)));
}
