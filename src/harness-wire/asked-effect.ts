/**
 * What an event of a harness asks for. Pure.
 *
 * Invariants: an event that the contract does not let a harness send, or that does not say what it must, is a broken protocol. What the
 * host may refuse to anybody (a tool that it does not run, a model that it does not have) is not: the sink answers that.
 */

import type { ExecutionId } from "../base/ids.ts";
import { EventKind, type Event, type Message, type ModelCall } from "../gen/agentsessions/v1/common_pb.ts";
import type { ApprovalRef, ModelRequest, ToolCall, ToolResult, Usage } from "../spi/index.ts";
import { brokenProtocol } from "./protocol.ts";

/** An event, as what it asks for. */
export type AskedEffect =
  | { readonly kind: "model"; readonly callId: string; readonly request: ModelRequest }
  | { readonly kind: "tool"; readonly call: ToolCall }
  | { readonly kind: "output"; readonly text: string }
  | { readonly kind: "report"; readonly result: ToolResult }
  | { readonly kind: "usage"; readonly usage: Usage }
  | { readonly kind: "completed" }
  | { readonly kind: "canceled" }
  | { readonly kind: "failed"; readonly grpcCode: number; readonly description: string }
  | { readonly kind: "parked"; readonly ref: ApprovalRef };

/** Reads an event of the execution `executionId`. Throws the broken rule. */
export function askedEffectOf(event: Event, executionId: ExecutionId): AskedEffect {
  if (event.executionId !== executionId) throw brokenProtocol("an event must carry the id of its execution");
  const { kind, body } = event;
  if (kind === EventKind.EVENT_MODEL_CALL && body.case === "model") return modelOf(body.value);
  if (kind === EventKind.EVENT_TOOL_CALL && body.case === "tool") return { kind: "tool", call: body.value };
  if (kind === EventKind.EVENT_OUTPUT && body.case === "message") return { kind: "output", text: textOf(body.value) };
  if (kind === EventKind.EVENT_TOOL_RESULT && body.case === "result") return reportOf(body.value);
  if (kind === EventKind.EVENT_USAGE && body.case === "usage") return { kind: "usage", usage: body.value };
  if (kind === EventKind.EVENT_PARKED && body.case === "parked") return { kind: "parked", ref: body.value };
  if (kind === EventKind.EVENT_END && body.case === "end") {
    const { state, error } = body.value;
    if (state === "COMPLETED") return { kind: "completed" };
    if (state === "CANCELED") return { kind: "canceled" };
    // The code may be any number, and is not there where the harness names no error: HarnessFailure makes an error's status of it.
    if (state === "FAILED") return { kind: "failed", grpcCode: error?.code ?? 0, description: error?.description ?? "" };
    throw brokenProtocol("END must say COMPLETED, FAILED or CANCELED");
  }
  throw brokenProtocol("an event must be one that a harness may send, with the body of its kind");
}

function modelOf(call: ModelCall): AskedEffect {
  if (call.id === "") throw brokenProtocol("MODEL_CALL must have an id, which its result repeats");
  const { model, messages, params, tools, toolChoice } = call;
  return { kind: "model", callId: call.id, request: { model, messages, params, tools, toolChoice } };
}

function textOf(message: Message): string {
  if (message.role !== "assistant" && message.role !== "") throw brokenProtocol("OUTPUT must be a message of the assistant");
  let text = "";
  for (const { part } of message.parts) {
    if (part.case !== "text") throw brokenProtocol("OUTPUT must hold text and nothing else");
    text += part.value.text;
  }
  return text;
}

function reportOf(result: ToolResult): AskedEffect {
  if (result.approvalRequestSeq !== 0n || result.approvalDecisionSeq !== 0n) {
    throw brokenProtocol("TOOL_RESULT must leave approval_request_seq and approval_decision_seq to the host");
  }
  return { kind: "report", result };
}

/** Whether two references name the same request. */
export function isSameRef(one: ApprovalRef, other: ApprovalRef): boolean {
  return one.executionId === other.executionId && one.toolCallId === other.toolCallId && one.requestSeq === other.requestSeq;
}
