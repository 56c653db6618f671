/**
 * One round of tools: everything that a model asked for in one message, and what it is told of each.
 *
 * Invariants:
 * - A call that cannot be made is a result that says why, never an exception: the model made the mistake and can mend it. What the host
 *   refuses it records as that call's result; what the agent itself refuses (a tool that is not on offer) the agent reports. Either way it
 *   is in the journal, and a replay does not depend on which tools there are then.
 * - Refusals are reported before anything is asked of the host: a turn that parks takes no reports.
 * - The calls that remain are asked for at once. Where physical tools are told from others the first physical call alone is among them, beside the
 *   pure ones: what comes after it was not decided on what it leaves behind. That holds too where the first one cannot be made.
 */

import { create } from "@bufbuild/protobuf";
import type { ExecutionId } from "../../base/ids.ts";
import { PartSchema, ToolCallSchema, ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ApprovalParkedError, type EventSink, type ToolCall, type ToolResult } from "../../spi/index.ts";
import type { CallSlot } from "../conversation.ts";
import type { OfferedTools } from "./offered-tools.ts";

/** What a round needs. */
export interface ToolRound {
  readonly sink: EventSink;
  readonly executionId: ExecutionId;
  readonly tools: OfferedTools;
  readonly signal: AbortSignal;
}

/** Has the calls made; resolves with every result. Rejects when the turn parks, is over, or its host cannot run a tool that it offered. */
export async function toolResults(calls: readonly CallSlot[], round: ToolRound): Promise<readonly ToolResult[]> {
  const first = firstPhysical(calls, round.tools);
  const refused = new Map(calls.flatMap((slot) => refusalOf(slot, first, round.tools) ?? []));
  const reports: ToolResult[] = [];
  for (const [slot, why] of refused) reports.push(await reported(slot, why, round));
  const asked = calls.filter((slot) => !refused.has(slot)).map((slot) => callHost(slot, round));
  const settled = await Promise.allSettled(asked);
  // A fault beside a park is the one that somebody has to hear of.
  await asked[settled.findIndex((each) => each.status === "rejected" && !(each.reason instanceof ApprovalParkedError))];
  return [...reports, ...(await Promise.all(asked))];
}

/** Reports that none of the calls was made, and why. */
export async function refuseAll(calls: readonly CallSlot[], why: string, round: ToolRound): Promise<void> {
  for (const slot of calls) await reported(slot, why, round);
}

/** The physical call of a message that is made; undefined where it has none. */
export function firstPhysical(calls: readonly CallSlot[], { isPhysical }: OfferedTools): CallSlot | undefined {
  return calls.find(({ call }) => isPhysical(call.tool));
}

/** Why a call is not even asked of the host. */
function refusalOf(slot: CallSlot, first: CallSlot | undefined, tools: OfferedTools): [[CallSlot, string]] | undefined {
  const { tool, args } = slot.call;
  const withheld = tools.withheld(tool);
  if (withheld !== undefined) return [[slot, withheld]];
  if (!tools.mediations.has(tool)) return [[slot, notOnOffer([...tools.mediations.keys()])]];
  if (args === undefined) return [[slot, "the arguments are not a JSON object; the tool was not run"]];
  if (slot !== first && tools.isPhysical(tool)) return [[slot, ONE_AT_A_TIME]];
  return undefined;
}

const ONE_AT_A_TIME =
  "one physical tool runs at a time, so this one was not run; ask for it again after the next observation if it is still right";

const NAMES_MAX = 100;

function notOnOffer(names: readonly string[]): string {
  if (names.length === 0) return "there are no tools; nothing was run";
  const more = names.length > NAMES_MAX ? " and others" : "";
  return `there is no tool of this name, so nothing was run; there are: ${names.slice(0, NAMES_MAX).join(", ")}${more}`;
}

async function reported({ hostId }: CallSlot, error: string, { sink, signal }: ToolRound): Promise<ToolResult> {
  const content = [create(PartSchema, { part: { case: "text", value: { text: error } } })];
  const result = create(ToolResultSchema, { id: hostId, isError: true, error, content });
  await sink.report(result, { signal });
  return result;
}

function callHost(slot: CallSlot, { sink, executionId, tools, signal }: ToolRound): Promise<ToolResult> {
  return sink.toolCall(hostCall(slot, executionId, tools), { signal, unfit: "answer" });
}

/** The call as the host is asked for it. Its key names the effect in the session: the turn, and the call in the turn. */
function hostCall({ call, hostId }: CallSlot, executionId: ExecutionId, { mediations }: OfferedTools): ToolCall {
  return create(ToolCallSchema, {
    id: hostId,
    tool: call.tool,
    args: call.args ?? {},
    mediation: mediations.get(call.tool)!,
    idempotencyKey: `${executionId}/${hostId}`,
  });
}
