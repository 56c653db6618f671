/** Fork's request, checked and in the controller's terms. Pure. */

import { invalidArgument } from "../base/errors.ts";
import { seqOf, sessionUidOf, type Seq, type SessionUid } from "../base/ids.ts";
import type { ForkRequest } from "../gen/agentsessions/v1/session_pb.ts";
import { FORK_CHILDREN_MAX } from "../journal/index.ts";
import type { ServiceLimits } from "./limits.ts";
import { labelsOf, nameText } from "./text.ts";

/** What a Fork asks for. */
export interface ParsedFork {
  readonly parent: SessionUid;
  /** 0 means the head. */
  readonly atSeq: Seq;
  /** One name a child; "" for a child without one. */
  readonly names: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Throws INVALID_ARGUMENT or RESOURCE_EXHAUSTED that names the field. */
export function parseFork(request: ForkRequest, limits: ServiceLimits): ParsedFork {
  const parent = sessionUidOf(request.session, "session");
  const atSeq = seqOf(request.atSeq, "at_seq");
  if (request.count < 1 || request.count > FORK_CHILDREN_MAX) throw invalidArgument("count", `must be from 1 to ${FORK_CHILDREN_MAX}`);
  if (request.identity !== undefined) throw invalidArgument("identity", "must be left out: a child does not inherit or choose a principal");
  return { parent, atSeq, names: namesOf(request, limits), labels: labelsOf(request.labels, "labels", limits) };
}

function namesOf(request: ForkRequest, limits: ServiceLimits): readonly string[] {
  const { childNames, count } = request;
  if (childNames.length === 0) return Array.from({ length: count }, () => "");
  if (childNames.length !== count) throw invalidArgument("child_names", "must be empty or name each of the children that count asks for");
  const names = childNames.map((name, index) => nameText(name, `child_names[${index}]`, limits.nameCharsMax));
  const given = names.filter((name) => name !== "");
  if (new Set(given).size !== given.length) throw invalidArgument("child_names", "must not have the same name twice");
  return names;
}
