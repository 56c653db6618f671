/** Planning a turn: everything in an invocation is found valid before anything is written. */

import { HoldfastError, invalidArgument } from "../base/errors.ts";
import type { Clock } from "../base/ports.ts";
import { encodeMessage, normaliseMessage } from "../canon/index.ts";
import { DeletionState } from "../gen/agentsessions/v1/session_pb.ts";
import { RECORD_BYTES_MAX, type SessionRow, type SessionSeed } from "../journal/index.ts";
import { servedNames, type HarnessCatalog, type HarnessDescriptor, type HarnessEntry, type Message } from "../spi/index.ts";
import { keepsMemory } from "./compute.ts";
import type { ExecInvocation, TurnPlan } from "./contract.ts";
import type { ControllerLimits } from "./limits.ts";
import { ownApprovals } from "./open-approvals.ts";
import { deletedError } from "./outcome.ts";

/** What planning needs of its controller. */
export interface PlanContext {
  readonly harnesses: HarnessCatalog;
  readonly clock: Clock;
  readonly limits: ControllerLimits;
}

/** Plans a turn of an existing session, or of one that is to be created from `session`. See `Controller.plan`. */
export async function planTurn(context: PlanContext, session: SessionRow | SessionSeed, invocation: ExecInvocation): Promise<TurnPlan> {
  checkLimits(invocation, context.limits);
  if (invocation.deadlineMs !== undefined && invocation.deadlineMs <= context.clock.nowMs()) {
    throw new HoldfastError("deadline_exceeded", "deadline_unix: it has passed; nothing was done", { field: "deadline_unix" });
  }
  const seed = isRow(session) ? session.seed : session;
  if (isRow(session)) checkState(session, invocation);
  const harness = resolveHarness(context.harnesses, seed, invocation, isRow(session));
  const inputs = invocation.inputs.map((message, index) => recordableInput(message, `inputs[${index}]`));
  const descriptor = await harness.describe();
  refuseForeignMemory(descriptor, harness, seed);
  const continues = isRow(session) && ownApprovals(session).length > 0;
  return { seed, invocation: { ...invocation, inputs }, harness, descriptor, continues };
}

function isRow(session: SessionRow | SessionSeed): session is SessionRow {
  return "projection" in session;
}

function checkLimits(invocation: ExecInvocation, limits: ControllerLimits): void {
  if (invocation.inputs.length > limits.inputsMax) throw overLimit("inputs", `must have at most ${limits.inputsMax} messages`);
  if (invocation.config.length > limits.configBytesMax) throw overLimit("config", `must have at most ${limits.configBytesMax} bytes`);
  for (const [index, message] of invocation.inputs.entries()) {
    if (message.role === "") throw invalidArgument(`inputs[${index}].role`, "must be user, system, assistant or tool");
  }
}

/** What a record needs beside its message: hashes, ids, the caller. */
const RECORD_OVERHEAD_BYTES = 8 * 1024;

/** An input as it will be recorded. Throws for what no record can hold. */
function recordableInput(message: Message, field: string): Message {
  const normal = normaliseMessage(message, field);
  const bytes = encodeMessage(normal).length + RECORD_OVERHEAD_BYTES;
  if (bytes > RECORD_BYTES_MAX) throw overLimit(field, `takes about ${bytes} bytes as a record; at most ${RECORD_BYTES_MAX} are allowed`);
  return normal;
}

function overLimit(field: string, message: string): HoldfastError {
  return new HoldfastError("resource_exhausted", `${field}: ${message}`, { field });
}

function checkState(row: SessionRow, invocation: ExecInvocation): void {
  if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw deletedError();
  const approvals = ownApprovals(row);
  if (approvals.length === 0 || invocation.inputs.length === 0) return;
  const isDecided = approvals.every(({ decision }) => decision !== undefined);
  const whatToDo = isDecided ? "it is decided already; resume" : "decide it and resume";
  throw new HoldfastError(
    "failed_precondition",
    `session: an approval call of it has no receipt yet; ${whatToDo}, or cancel the turn, before giving it new inputs`,
  );
}

function resolveHarness(harnesses: HarnessCatalog, seed: SessionSeed, invocation: ExecInvocation, exists: boolean): HarnessEntry {
  const asked = invocation.harness === "" ? seed.harness : invocation.harness;
  const isOther = asked !== seed.harness;
  if (isOther && harnesses.find(seed.harness)?.source === "registered") {
    throw otherHarness("the session is pinned to its registered harness; leave it empty");
  }
  const entry = harnesses.find(asked);
  if (entry === undefined) throw unknownHarness(harnesses, !isOther && exists);
  if (isOther && entry.source === "registered") {
    throw otherHarness("is a registered one, which drives the sessions that were created with it; leave it empty");
  }
  return entry;
}

/** A session has one memory: its own harness's. */
export function refuseForeignMemory(descriptor: HarnessDescriptor, harness: HarnessEntry, seed: SessionSeed): void {
  if (!keepsMemory(descriptor) || harness.name === seed.harness) return;
  throw otherHarness("it keeps state in memory, so it runs only as a session's own; leave it empty");
}

function otherHarness(message: string): HoldfastError {
  return new HoldfastError("failed_precondition", `harness: ${message}`, { field: "harness" });
}

/** The session's own harness that is gone is a state of this host; a name in the request that nobody serves is a bad request. */
function unknownHarness(harnesses: HarnessCatalog, own: boolean): HoldfastError {
  const names = servedNames(harnesses);
  if (!own) return invalidArgument("harness", `no harness of this host has this name; it serves: ${names}`);
  const message = `session: its harness is not served by this host; start the host with it (it serves: ${names})`;
  return new HoldfastError("failed_precondition", message, { field: "harness" });
}
