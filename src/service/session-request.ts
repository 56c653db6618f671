/** CreateSession's request as a draft of a session. Pure. */

import type { CreateSessionRequest, Session } from "../gen/agentsessions/v1/session_pb.ts";
import { IdentityRefSchema, OriginSchema, type IdentityRef, type Origin } from "../gen/agentsessions/v1/common_pb.ts";
import { invalidArgument } from "../base/errors.ts";
import { checkContent } from "./content.ts";
import type { ServiceLimits } from "./limits.ts";
import { annotationsOf, labelsOf, nameText, plainText, refuseMany } from "./text.ts";

/** What a caller decides of a new session. */
export interface SessionDraft {
  readonly project: string;
  readonly name: string;
  /** "" means the server's default. */
  readonly harness: string;
  /** "" means the server's default. */
  readonly model: string;
  readonly identity: IdentityRef | undefined;
  readonly origin: Origin | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The draft of a session of which a caller said nothing but the harness. */
export function bareDraft(harness: string): SessionDraft {
  return {
    project: "",
    name: "",
    harness,
    model: "",
    identity: undefined,
    origin: undefined,
    labels: {},
    annotations: {},
  };
}

/** The draft in a request. Throws INVALID_ARGUMENT or RESOURCE_EXHAUSTED that names the field. */
export function parseCreateSession(request: CreateSessionRequest, limits: ServiceLimits): SessionDraft {
  const { session } = request;
  if (session === undefined) throw invalidArgument("session", "must be given; an empty one takes every default");
  refuseOutputOnly(session);
  const { metadata } = session;
  return {
    project: nameText(metadata?.project ?? "", "session.metadata.project", limits.nameCharsMax),
    name: nameText(metadata?.name ?? "", "session.metadata.name", limits.nameCharsMax),
    harness: nameText(session.harness, "session.harness", limits.resourceCharsMax),
    model: nameText(session.model, "session.model", limits.resourceCharsMax),
    identity: identityOf(session.identity, limits, "session.identity"),
    origin: originOf(session.origin, limits),
    labels: labelsOf(session.labels, "session.labels", limits),
    annotations: annotationsOf(session.annotations, "session.annotations", limits),
  };
}

/** The fields that the host decides, and whether a request has them. A default value is the same as absence. */
function refuseOutputOnly(session: Session): void {
  const { metadata } = session;
  const given: readonly (readonly [field: string, isSet: boolean])[] = [
    ["session.metadata.uid", metadata !== undefined && metadata.uid !== ""],
    ["session.metadata.version", metadata !== undefined && metadata.version !== 0n],
    ["session.metadata.create_time", metadata?.createTime !== undefined],
    ["session.metadata.update_time", metadata?.updateTime !== undefined],
    ["session.last_seq", session.lastSeq !== 0n],
    ["session.parent_uid", session.parentUid !== ""],
    ["session.fork_seq", session.forkSeq !== 0n],
    ["session.compute", session.compute !== undefined],
    ["session.exec_state", session.execState !== 0],
    ["session.compute_state", session.computeState !== 0],
    ["session.pending_approval", session.pendingApproval !== undefined],
    ["session.deletion_state", session.deletionState !== 0],
  ];
  for (const [field, isSet] of given) {
    if (isSet) throw invalidArgument(field, "is set by the server; leave it out");
  }
}

/** An identity that is recorded. Throws INVALID_ARGUMENT that names a part of `field`. */
export function identityOf(
  identity: IdentityRef | undefined,
  limits: ServiceLimits,
  field: "session.identity" | "identity",
): IdentityRef | undefined {
  if (identity === undefined) return undefined;
  checkContent(IdentityRefSchema, identity, field, limits.nestingMax);
  plainText(identity.principal, `${field}.principal`, limits.provenanceCharsMax);
  plainText(identity.issuer, `${field}.issuer`, limits.provenanceCharsMax);
  plainText(identity.subject, `${field}.subject`, limits.provenanceCharsMax);
  return identity;
}

function originOf(origin: Origin | undefined, limits: ServiceLimits): Origin | undefined {
  if (origin === undefined) return undefined;
  checkContent(OriginSchema, origin, "session.origin", limits.nestingMax);
  plainText(origin.source, "session.origin.source", limits.provenanceCharsMax);
  plainText(origin.subject, "session.origin.subject", limits.provenanceCharsMax);
  plainText(origin.uri, "session.origin.uri", limits.provenanceCharsMax);
  const attributes = Object.entries(origin.attributes);
  refuseMany(attributes.length, limits.originAttributesMax, "session.origin.attributes", "attributes");
  for (const [key, value] of attributes) {
    plainText(key, "session.origin.attributes", limits.keyCharsMax);
    plainText(value, "session.origin.attributes", limits.provenanceCharsMax);
  }
  return origin;
}
