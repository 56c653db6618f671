/** What a run left behind, read over the API and from the ledgers. */

import { EventKind, type LogRecord } from "../../../src/gen/agentsessions/v1/common_pb.ts";
import type { Client } from "../../../src/client/index.ts";
import { isUnknownOutcome, type ToolResult } from "../../../src/spi/index.ts";
import type { Evidence, RecordedCall } from "./check.ts";
import { readLedgers } from "./ledgers.ts";
import { TOOLS, type ToolName } from "./plan.ts";

/** The evidence, and what is told of the run beside it. */
export interface Gathered {
  readonly evidence: Evidence;
  /** Turns that ended COMPLETED and called a tool. */
  readonly toolTurns: number;
  readonly records: number;
}

/** Gathers it from the sessions of a run and the folder of its ledgers. */
export async function gather(client: Client, sessions: readonly string[], ledgers: string): Promise<Gathered> {
  const calls: RecordedCall[] = [];
  const unsettled: string[] = [];
  const broken: string[] = [];
  let toolTurns = 0;
  let recordCount = 0;
  for (const session of sessions) {
    const records: LogRecord[] = [];
    for await (const { record } of client.sessions.replay(session)) records.push(record);
    recordCount += records.length;
    calls.push(...callsIn(session, records));
    toolTurns += toolTurnsIn(records);
    unsettled.push(...(await client.toolCalls.unsettled(session)).map(({ call }) => call?.id ?? ""));
    const { intact } = await client.journal.verify(session);
    if (!intact) broken.push(session);
  }
  return { evidence: { calls, unsettled, broken, ...readLedgers(ledgers) }, toolTurns, records: recordCount };
}

/** The calls of a journal; their ids are their marks. */
export function callsIn(session: string, records: readonly LogRecord[]): readonly RecordedCall[] {
  const results = new Map<string, ToolResult[]>();
  const decisions = new Map<string, number>();
  for (const { event } of records) {
    if (event?.body.case === "result") results.set(event.body.value.id, [...(results.get(event.body.value.id) ?? []), event.body.value]);
    if (event?.body.case === "approvalResult") {
      const { toolCallId } = event.body.value;
      decisions.set(toolCallId, (decisions.get(toolCallId) ?? 0) + 1);
    }
  }
  return records.flatMap(({ event }) => {
    if (event?.body.case !== "tool") return [];
    const { id: mark, tool } = event.body.value;
    if (!isToolName(tool)) throw new Error(`${mark}: a call of "${tool}", which is no tool of this run`);
    return [{ session, mark, tool, results: (results.get(mark) ?? []).map(outcomeOf), decisions: decisions.get(mark) ?? 0 }];
  });
}

/** Settles what is unsettled as the ledger has it, and returns what is unsettled afterwards. */
export async function settleAll(client: Client, sessions: readonly string[], { always }: Evidence): Promise<readonly string[]> {
  const happened = new Set(always.map(({ mark }) => mark));
  const left: string[] = [];
  for (const session of sessions) {
    for (const { call } of await client.toolCalls.unsettled(session)) {
      const id = call?.id ?? "";
      await client.toolCalls.settle(session, id, happened.has(id) ? "done" : "failed");
    }
    left.push(...(await client.toolCalls.unsettled(session)).map(({ call }) => call?.id ?? ""));
  }
  return left;
}

function outcomeOf(result: ToolResult): RecordedCall["results"][number] {
  if (!result.isError) return "success";
  return isUnknownOutcome(result) ? "unknown" : "failed";
}

function toolTurnsIn(records: readonly LogRecord[]): number {
  const called = new Set(records.flatMap(({ event }) => (event?.kind === EventKind.EVENT_TOOL_CALL ? [event.executionId] : [])));
  const ended = records.filter(
    ({ event }) => event?.body.case === "end" && event.body.value.state === "COMPLETED" && called.has(event.executionId),
  );
  return ended.length;
}

function isToolName(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}
