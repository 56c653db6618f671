/** Exec's and Cancel's requests, checked and in the controller's terms. Pure. */

import { MessageSchema, type Message, type Part } from "../gen/agentsessions/v1/common_pb.ts";
import type { CancelRequest, ExecRequest } from "../gen/agentsessions/v1/session_pb.ts";
import { invalidArgument } from "../base/errors.ts";
import { seqOf, sessionUidOf, type SessionUid } from "../base/ids.ts";
import type { CancelReason, ExecInvocation } from "../controller/index.ts";
import { checkContent } from "./content.ts";
import type { ServiceLimits } from "./limits.ts";
import { nameText, overLimit, plainText, refuseMany } from "./text.ts";

/** What an Exec asks for, but for who asks. */
export interface ParsedExec {
  /** Undefined: a session is to be created first. */
  readonly session: SessionUid | undefined;
  readonly invocation: Omit<ExecInvocation, "caller">;
}

/** The last second of the year 9999. */
const DEADLINE_SECONDS_MAX = 253_402_300_799n;
const ROLES: ReadonlySet<string> = new Set(["system", "user", "assistant", "tool"]);

/** Throws INVALID_ARGUMENT or RESOURCE_EXHAUSTED that names the field. A deadline in the past is left to the controller. */
export function parseExec(request: ExecRequest, limits: ServiceLimits): ParsedExec {
  const session = request.session === "" ? undefined : sessionUidOf(request.session, "session");
  checkInputs(request.inputs, limits);
  if (request.config.length > limits.configBytesMax) {
    throw overLimit("config", `takes ${request.config.length} bytes; at most ${limits.configBytesMax} are allowed`);
  }
  const expected = request.expectedLastSeq;
  return {
    session,
    invocation: {
      inputs: request.inputs,
      harness: nameText(request.harness, "harness", limits.resourceCharsMax),
      config: request.config,
      resumeFromSeq: request.resumeFromSeq,
      expectedLastSeq: expected === undefined ? undefined : seqOf(expected, "expected_last_seq"),
      deadlineMs: deadlineMsOf(request.deadlineUnix),
    },
  };
}

function checkInputs(inputs: readonly Message[], limits: ServiceLimits): void {
  refuseMany(inputs.length, limits.inputsMax, "inputs", "messages");
  inputs.forEach((message, index) => {
    const path = `inputs[${index}]`;
    if (!ROLES.has(message.role)) throw invalidArgument(`${path}.role`, "must be system, user, assistant or tool");
    refuseMany(message.parts.length, limits.partsMax, `${path}.parts`, "parts");
    message.parts.forEach((part, at) => checkPart(part, `${path}.parts[${at}]`));
    checkContent(MessageSchema, message, path, limits.nestingMax);
  });
}

function checkPart({ part }: Part, path: string): void {
  if (part.case === undefined) {
    throw invalidArgument(path, "must have one of text, file, data, reasoning, tool_call and tool_result");
  }
  if (part.case === "reasoning") part.value.summary.forEach((inner, index) => checkPart(inner, `${path}.reasoning.summary[${index}]`));
  if (part.case === "toolResult") part.value.content.forEach((inner, index) => checkPart(inner, `${path}.tool_result.content[${index}]`));
}

function deadlineMsOf(seconds: bigint): number | undefined {
  if (seconds === 0n) return undefined;
  if (seconds < 0n || seconds > DEADLINE_SECONDS_MAX) {
    throw invalidArgument("deadline_unix", "must be seconds since 1970-01-01T00:00:00Z, or 0 for no deadline");
  }
  return Number(seconds) * 1000;
}

/** What a Cancel asks for. */
export interface ParsedCancel {
  readonly session: SessionUid;
  readonly executionId: string;
  readonly reason: CancelReason;
}

export function parseCancel(request: CancelRequest, limits: ServiceLimits): ParsedCancel {
  return {
    session: sessionUidOf(request.session, "session"),
    executionId: plainText(request.executionId, "execution_id", limits.resourceCharsMax),
    reason: reasonOf(request.reason),
  };
}

function reasonOf(reason: string): CancelReason {
  switch (reason) {
    case "":
      return "USER";
    case "USER":
    case "TIMEOUT":
    case "INTERNAL":
      return reason;
    default:
      throw invalidArgument("reason", "must be USER, TIMEOUT or INTERNAL; empty means USER");
  }
}
