/** What was said in a session before: its last turns, read from its journal. */

import type { JsonObject } from "@bufbuild/protobuf";
import { EventKind, type Client, type Event, type LogRecord, type Message } from "../../client/index.ts";
import { MarkdownStream } from "./markdown/stream.ts";
import type { Printed } from "./printed.ts";
import { localTool, type ToolOutcome } from "./tools/index.ts";

/** Records that are looked at: the last ones, so that a long session is picked up as fast as a short one. */
const RECORDS_MAX = 2_000;
/** Turns that are shown. */
const TURNS_SHOWN = 3;

/** Where a session stands. */
export interface PastTurns {
  readonly model: string;
  /** Its last turns that are over, and what was said in the one that is not. */
  readonly printed: readonly Printed[];
  /** From here on a stream tells what is not printed. */
  readonly fromSeq: bigint;
  /** The message whose turn is open; undefined where none is, "" where it has no id. */
  readonly openMessageId: string | undefined;
  /** The messages of the turns that were looked at. */
  readonly messageIds: ReadonlySet<string>;
}

/** Reads the end of a session's journal. */
export async function pastTurns(client: Client, session: string, signal: AbortSignal): Promise<PastTurns> {
  const { lastSeq, model } = await client.sessions.get(session, { signal });
  const records = client.sessions.replay(session, {
    fromSeq: lastSeq > BigInt(RECORDS_MAX) ? lastSeq - BigInt(RECORDS_MAX) : 0n,
    toSeq: lastSeq,
    signal,
  });
  const turns = new TurnReader();
  if (lastSeq > 0n) for await (const { record } of records) turns.add(record);
  return { model, ...turns.result(lastSeq) };
}

interface Turn {
  readonly startSeq: bigint;
  readonly messageId: string;
  readonly said: Printed[];
  readonly rest: Printed[];
  readonly summaries: Map<string, string>;
  isOver: boolean;
}

/** Takes records in, in order, and keeps the last turns. Pure. */
export class TurnReader {
  #turns: Turn[] = [];
  readonly #messageIds = new Set<string>();

  add({ seq, event }: LogRecord): void {
    if (event === undefined) return;
    if (event.body.case === "executionStart") return this.#begin(seq, event.body.value.config);
    const turn = this.#turns.at(-1);
    if (turn !== undefined && !turn.isOver) addEvent(turn, event);
  }

  result(lastSeq: bigint): Omit<PastTurns, "model"> {
    const last = this.#turns.at(-1);
    const open = last?.isOver === false ? last : undefined;
    const over = this.#turns.filter(({ isOver }) => isOver).slice(-TURNS_SHOWN);
    return {
      printed: [...over.flatMap(({ said, rest }) => [...said, ...rest]), ...(open?.said ?? [])],
      fromSeq: open === undefined ? lastSeq : open.startSeq - 1n,
      openMessageId: open?.messageId,
      messageIds: this.#messageIds,
    };
  }

  #begin(startSeq: bigint, config: Uint8Array): void {
    const messageId = messageIdIn(config);
    if (messageId !== "") this.#messageIds.add(messageId);
    this.#turns.push({ startSeq, messageId, said: [], rest: [], summaries: new Map(), isOver: false });
    if (this.#turns.length > TURNS_SHOWN + 1) this.#turns.shift();
  }
}

function addEvent(turn: Turn, { kind, body }: Event): void {
  switch (body.case) {
    case "message":
      if (kind === EventKind.EVENT_INPUT) turn.said.push({ kind: "said", text: textIn(body.value) });
      else turn.rest.push(...answerIn(body.value));
      return;
    case "tool":
      turn.summaries.set(body.value.id, summaryOf(body.value.tool, body.value.args ?? {}));
      return;
    case "result": {
      const { id, isError, error } = body.value;
      turn.rest.push({ kind: "call", summary: turn.summaries.get(id) ?? id });
      // Of a call that failed its client's own words say more than that it failed.
      const result = isError ? textIn({ parts: body.value.content }) || error : resultText(body.value);
      const outcome: ToolOutcome = { success: !isError, result };
      turn.rest.push({ kind: "outcome", outcome, isWhole: false });
      return;
    }
    case "end":
      turn.isOver = true;
      if (body.value.state === "CANCELED") turn.rest.push({ kind: "note", text: "cancelled" });
      return;
    default:
  }
}

/** The first words of a call, as they are where it cannot be looked at any more. */
export function summaryOf(tool: string, args: Readonly<Record<string, unknown>>): string {
  const named = args["path"] ?? args["command"] ?? args["text"];
  if (localTool(tool) !== undefined && typeof named === "string") return `${tool} ${named}`;
  return `${tool} ${JSON.stringify(args)}`;
}

function answerIn(message: Message): readonly Printed[] {
  const stream = new MarkdownStream();
  return [...stream.add(textIn(message)), ...stream.end()].map((block) => ({ kind: "answer", block }));
}

function textIn({ parts }: Pick<Message, "parts">): string {
  return parts.map(({ part }) => (part.case === "text" ? part.value.text : "")).join("");
}

function resultText({ output, content }: { readonly output?: unknown; readonly content: Message["parts"] }): string {
  const text = textIn({ parts: content });
  return text !== "" || output === undefined ? text : JSON.stringify(output);
}

/** The id of the message that a turn was begun with, as the interactive door notes it in the turn's config. */
function messageIdIn(config: Uint8Array): string {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(config));
    const client: unknown = typeof value === "object" && value !== null && "client" in value ? value.client : undefined;
    const id: unknown = typeof client === "object" && client !== null && "message_id" in client ? client.message_id : undefined;
    return typeof id === "string" ? id : "";
  } catch {
    // Another harness's config may be anything.
    return "";
  }
}

/** The seqs at which a session's turns ended, oldest first. */
export async function turnEnds(client: Client, session: string, signal: AbortSignal): Promise<readonly bigint[]> {
  const ends: bigint[] = [];
  for await (const { record } of client.sessions.replay(session, { signal })) {
    if (record.event?.body.case === "end") ends.push(record.seq);
  }
  return ends;
}

/** The tool call of this id that a session asked for last, after a seq. */
export async function callInJournal(
  client: Client,
  session: string,
  callId: string,
  fromSeq: bigint,
  signal: AbortSignal,
): Promise<{ readonly tool: string; readonly args: JsonObject } | undefined> {
  let found: { readonly tool: string; readonly args: JsonObject } | undefined;
  for await (const { record } of client.sessions.replay(session, { fromSeq, signal })) {
    const body = record.event?.body;
    if (body?.case === "tool" && body.value.id === callId) found = { tool: body.value.tool, args: body.value.args ?? {} };
  }
  return found;
}
