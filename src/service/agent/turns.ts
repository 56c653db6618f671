/** What a client asks of its session's turns: to begin one, to cancel it, to let a tool run. */

import { create } from "@bufbuild/protobuf";
import { newUuid } from "../../base/ids.ts";
import { approvalRefOf, ownApprovals, type ExecInvocation } from "../../controller/index.ts";
import { FeedbackNoteSchema } from "../../gen/holdfast/v1/agent_notes_pb.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { CancelTurn, MessageFeedback, PermissionDecision, RegisterTools, ToolResult, UserMessage } from "../../gen/roz/v1/agent_pb.ts";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import type { SessionRow } from "../../journal/index.ts";
import { accessSession } from "../access.ts";
import type { CallContext } from "../contract.ts";
import { AGENT_HARNESS, resolveContextTokens, resolveModel, turnConfig } from "../environment/index.ts";
import { overLimit, plainText } from "../text.ts";
import type { AttachedSession } from "./attached.ts";
import { checkAnswer } from "./client-result.ts";
import { addFeedback } from "./client-notes.ts";
import { hostToolNames, placeOf, type AgentHost } from "./host.ts";
import { Refusal } from "./session-error.ts";
import { changedTools, checkTools, toolSpec, type ClientToolSpec } from "./tool-schemas.ts";
import { HISTORY_HARNESS } from "./turn-view.ts";
import { checkMessage, checkSystemContext, inputsOf, modeOf } from "./user-message.ts";

/** Begins a turn with what a user said. Throws what is wrong with the message, by its field. */
export async function say(host: AgentHost, attached: AttachedSession, message: UserMessage, context: CallContext): Promise<void> {
  checkMessage(message, host.limits);
  checkTools(message.tools, "tools", host);
  const mode = modeOf(message.aiMode);
  const row = await idleRow(host, attached, context);
  const { environment, host: where } = placeOf(host, row.seed);
  if (where.harness === HISTORY_HARNESS) {
    throw new HoldfastError("failed_precondition", "harness: the session's harness only keeps what it is given, and answers nothing");
  }
  if (mode === "ooda_re_act" && where.harness === AGENT_HARNESS && where.observation === undefined) {
    throw invalidArgument("ai_mode", "must be react: the session's environment has nothing to observe, which ooda_re_act needs");
  }
  const { notes } = attached;
  const { start, tools: registered } = notes.current;
  const messageId = message.messageId || newUuid(host.ports);
  const specs = (message.tools.length > 0 ? message.tools : registered).map((tool) => toolSpec(tool, host.limits));
  const config = turnConfig(environment, {
    mode,
    host: where,
    clientTools: specs.map(({ definition: { name }, category, timeoutMs }) => ({ name, category, timeoutMs })),
    hostTools: hostToolNames(host),
    projectContext: start?.projectContext ?? [],
    maxContextTokens: resolveContextTokens(environment, start?.maxContextTokens),
    // What the client chose is the session's model.
    model: start?.model ? "" : resolveModel(environment, ""),
    messageId,
  });
  const head = row.projection.lastSeq;
  const pending = notes.pendingContext(head);
  await remember(attached, { head, isUsed: pending !== undefined, messageId: config.byteLength === 0 ? messageId : undefined });
  const inputs = inputsOf(message, message.systemContext ?? pending);
  await begin(host, attached, { row, config, specs, inputs }, context);
}

/** The session's row, where a turn may begin. */
async function idleRow(host: AgentHost, attached: AttachedSession, context: CallContext): Promise<SessionRow> {
  // The END of the last turn was told before the turn was quite gone.
  const running = host.controller.running(attached.session);
  if (running !== undefined && running.executionId === attached.endedTurn) await running.outcome;
  const row = await accessSession(host, "session.exec", attached.session, "session", context);
  if (row.projection.deletionState !== DeletionState.DELETION_ACTIVE) throw new Refusal("no_session", "session: it was deleted");
  const isBusy = host.controller.running(attached.session) !== undefined || row.holder !== undefined || ownApprovals(row).length > 0;
  if (isBusy || attached.transcript.turn !== undefined) {
    throw new Refusal("turn_in_progress", "turn: one is running; wait for its TurnComplete, or cancel it", true);
  }
  return row;
}

/** Keeps what would be lost with a crash right before or after the turn begins. */
async function remember(
  { notes }: AttachedSession,
  turn: { readonly head: number; readonly isUsed: boolean; readonly messageId: string | undefined },
): Promise<void> {
  const { systemContext } = notes.current;
  const isOver = systemContext !== undefined && !turn.isUsed;
  if (!turn.isUsed && !isOver && turn.messageId === undefined) return;
  await notes.change((next) => {
    if (turn.isUsed) next.systemContextUsedAt ??= BigInt(turn.head);
    if (isOver) forgetContext(next);
    if (turn.messageId !== undefined) Object.assign(next, { messageId: turn.messageId, messageAfterSeq: BigInt(turn.head) });
  });
}

function forgetContext(notes: { systemContext?: string | undefined; systemContextUsedAt?: bigint | undefined }): void {
  delete notes.systemContext;
  delete notes.systemContextUsedAt;
}

interface TurnToBegin {
  readonly row: SessionRow;
  readonly config: Uint8Array;
  readonly specs: readonly ClientToolSpec[];
  readonly inputs: ExecInvocation["inputs"];
}

async function begin(
  host: AgentHost,
  attached: AttachedSession,
  { row, config, specs, inputs }: TurnToBegin,
  context: CallContext,
): Promise<void> {
  const plan = await host.controller.plan(row, {
    inputs,
    caller: context.caller.identity,
    harness: "",
    config,
    resumeFromSeq: 0n,
    expectedLastSeq: undefined,
    deadlineMs: undefined,
  });
  // Whoever has the session now says what is done in it.
  if (attached.isClosed) throw new Refusal("taken_over", "session: another stream has taken it over");
  host.clientTools.offer(plan.invocation.config, specs);
  attached.watch(await host.controller.begin(attached.session, plan));
}

/** Takes the result of a tool. */
export function answer(host: AgentHost, attached: AttachedSession, result: ToolResult): void {
  checkAnswer(result);
  plainText(result.toolCallId, "tool_call_id", ID_CHARS_MAX);
  if (host.channels.answer(attached.session, result) !== "unknown") return;
  const turn = attached.transcript.turn;
  if (turn === undefined && host.controller.running(attached.session) === undefined) {
    throw new Refusal("no_active_turn", "tool_result: no turn runs that could take it");
  }
  // A result that came before, over another connection or to a host that stopped since, counts once.
  if (turn?.call(result.toolCallId)?.resultOf === "client") return;
  throw new Refusal("unknown_tool_call", "tool_call_id: no call waits for a result under this id; its time may be over");
}

/** An id as models and harnesses give them. */
const ID_CHARS_MAX = 1_024;

/** Records a decision. What it lets go on is taken up once the decision is read. */
export async function decide(
  host: AgentHost,
  attached: AttachedSession,
  decision: PermissionDecision,
  context: CallContext,
): Promise<void> {
  const { toolCallId, approved } = decision;
  if (plainText(toolCallId, "tool_call_id", ID_CHARS_MAX) === "") throw invalidArgument("tool_call_id", "must be that of the question");
  const row = await accessSession(host, "session.approve", attached.session, "session", context);
  const open = ownApprovals(row).find((approval) => approval.toolCallId === toolCallId);
  const known = open?.decision?.approved ?? attached.transcript.turn?.call(toolCallId)?.approved;
  if (known !== undefined) {
    if (known === approved) return;
    throw invalidArgument("approved", `must be ${String(known)}, which the call was decided with, or left alone`);
  }
  if (open === undefined) throw new Refusal("unknown_tool_call", "tool_call_id: no call waits for a decision under this id");
  const ref = approvalRefOf(row, open);
  await host.controller.approve({ session: attached.session, ref, approved, reason: "", actor: context.caller.identity });
}

/** Cancels the turn that is open. Its end is told as TurnComplete. */
export async function cancelTurn(host: AgentHost, attached: AttachedSession, { reason }: CancelTurn, context: CallContext): Promise<void> {
  checkReason(reason, host);
  const row = await accessSession(host, "session.cancel", attached.session, "session", context);
  const open = row.projection.openTurn;
  const isOver = attached.transcript.turn === undefined && host.controller.running(attached.session) === undefined;
  if (open === undefined || isOver) throw new Refusal("no_active_turn", "turn: none is running");
  await host.controller.cancel({ session: attached.session, executionId: "", reason: "USER" });
}

/** Cancels the turn that is open, puts the session to sleep and ends the stream. */
export async function cancelSession(host: AgentHost, attached: AttachedSession, reason: string, context: CallContext): Promise<void> {
  checkReason(reason, host);
  const { session } = attached;
  await accessSession(host, "session.cancel", session, "session", context);
  const row = await host.controller.cancel({ session, executionId: "", reason: "USER" });
  // A session that another host has taken meanwhile stays as it is.
  await host.controller.suspend(session, context.caller.identity).catch(() => undefined);
  attached.endAfter(row.projection.lastSeq);
}

function checkReason(reason: string, { limits }: Pick<AgentHost, "limits">): void {
  if (reason.length > limits.reasonCharsMax) throw overLimit("reason", `must have at most ${limits.reasonCharsMax} characters`);
}

/** Adds and removes tools, from the next turn on. */
export async function registerTools(host: AgentHost, { notes }: AttachedSession, change: RegisterTools): Promise<void> {
  const source = plainText(change.source ?? "", "source", SOURCE_CHARS_MAX);
  checkSystemContext(change.systemContext, host.limits);
  checkTools(change.tools, "tools", host);
  const tools = changedTools(notes.current.tools, { source, tools: change.tools });
  checkTools(tools, "tools", host);
  await notes.change((next) => {
    next.tools = tools;
    if (change.systemContext === undefined) return;
    forgetContext(next);
    if (change.systemContext.trim() !== "") next.systemContext = change.systemContext;
  });
}

/** As long as a tool's name. */
const SOURCE_CHARS_MAX = 64;

/** Keeps what a client says of a message. */
export async function keepFeedback(
  host: AgentHost,
  { session }: AttachedSession,
  feedback: MessageFeedback,
  context: CallContext,
): Promise<void> {
  const { sessionId, messageId, rating } = feedback;
  if (sessionId !== "" && sessionId !== session) throw invalidArgument("session_id", "must be that of this stream's session, or empty");
  if (plainText(messageId, "message_id", host.limits.idCharsMax) === "") throw invalidArgument("message_id", "must be that of a message");
  if (rating !== "up" && rating !== "down") throw invalidArgument("rating", "must be up or down");
  await accessSession(host, "session.exec", session, "session", context);
  const principal = context.caller.identity?.principal ?? "";
  const note = create(FeedbackNoteSchema, { messageId, rating, timeMs: BigInt(host.ports.clock.nowMs()), principal });
  if (await addFeedback(host.notes, session, note, host.limits.feedbackMax)) return;
  throw overLimit("feedback", `the session has ${host.limits.feedbackMax} entries already, which is as many as are kept`);
}
