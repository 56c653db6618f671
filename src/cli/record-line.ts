/** A record as a person reads it: seq, kind, and what happened, on one line. Pure. */

import { codeOfGrpcStatus } from "../base/errors.ts";
import {
  EventKind,
  Lifecycle_Kind,
  type Event,
  type LogRecord,
  type Message,
  type Part,
  type ToolResult,
  type Usage,
} from "../gen/agentsessions/v1/common_pb.ts";
import { clipped, plain, plainLine } from "./plain.ts";

/** How wide the column of kinds is: the longest one and two spaces. */
const KIND_CHARS = 18;
/** How much of a tool's arguments and results a line shows; `--json` shows all. */
const CLIP_CHARS = 160;

/** What comes before a record's detail. */
export function recordPrefix(seq: bigint, kind: string): string {
  return `${String(seq).padStart(5)}  ${kind.padEnd(KIND_CHARS)}`;
}

/** Where further lines of a record's text begin. */
export const CONTINUATION = " ".repeat(recordPrefix(0n, "").length);

/** The kind of a record in the contract's word without its prefix. */
export function kindOf({ event }: LogRecord): string {
  switch (event?.body.case) {
    case "executionStart":
      return "EXECUTION_START";
    case "message":
      return event.kind === EventKind.EVENT_INPUT ? "INPUT" : "OUTPUT";
    case "model":
      return "MODEL_CALL";
    case "tool":
      return "TOOL_CALL";
    case "result":
      return "TOOL_RESULT";
    case "approval":
      return "APPROVAL_REQUEST";
    case "approvalResult":
      return "APPROVAL_RESULT";
    case "usage":
      return "USAGE";
    case "lifecycle":
      return "LIFECYCLE";
    case "end":
      return "END";
    case "error":
      return "ERROR";
    case "parked":
      return "PARKED";
    case undefined:
      return "UNKNOWN";
  }
}

/** A record on a line, or on several where its text has several. */
export function recordLine(record: LogRecord): string {
  const detail = record.event === undefined ? "" : detailOf(record.event);
  return `${recordPrefix(record.seq, kindOf(record))}${indented(detail)}`.trimEnd();
}

/** `text` with its further lines indented under its first. */
export function indented(text: string): string {
  return text.replaceAll("\n", `\n${CONTINUATION}`);
}

function detailOf(event: Event): string {
  const { body } = event;
  switch (body.case) {
    case "executionStart": {
      const { harness, harnessVersion, inputCount, config } = body.value;
      const inputs = inputCount === undefined ? "" : `${inputCount} ${inputCount === 1n ? "input" : "inputs"}`;
      return spaced(
        plainLine(`${harness} ${harnessVersion}`.trim()),
        inputs,
        config.length === 0 ? "" : `config of ${config.length} bytes`,
      );
    }
    case "message":
      return messageDetail(event, body.value);
    case "model":
      return spaced(plainLine(body.value.model), `sha256 ${body.value.inputHash.slice(0, 8)}…`);
    case "tool":
      return spaced(plainLine(body.value.tool), plainLine(body.value.id), clipped(JSON.stringify(body.value.args ?? {}), CLIP_CHARS));
    case "result":
      return spaced(plainLine(body.value.id), body.value.isError ? failureText(body.value) : resultText(body.value));
    case "approval":
      return spaced(plainLine(body.value.toolCallId), clipped(body.value.reason, CLIP_CHARS));
    case "approvalResult":
      return spaced(plainLine(body.value.toolCallId), body.value.approved ? "approved" : "denied", clipped(body.value.reason, CLIP_CHARS));
    case "usage":
      return usageDetail(body.value);
    case "lifecycle":
      return spaced(LIFECYCLES[body.value.kind] ?? "", clipped(body.value.detail, CLIP_CHARS));
    case "end":
      return spaced(plainLine(body.value.state), body.value.error === undefined ? "" : plain(body.value.error.description));
    case "error":
      return spaced(statusText(body.value.code), plain(body.value.description));
    case "parked":
      return plainLine(body.value.toolCallId);
    case undefined:
      return "";
  }
}

/** What a tool gave back: where it is, or what it said and its output. */
function resultText({ output, outputUri, content }: ToolResult): string {
  if (outputUri !== "") return plainLine(outputUri);
  const said = content.map(partText).join("");
  return clipped(spaced(said, output === undefined ? "" : JSON.stringify(output)), CLIP_CHARS);
}

/** Why a tool failed; then what it said, where that is something else: a client's tool says in its own words what became of the call. */
function failureText({ error, content }: ToolResult): string {
  const why = clipped(error, CLIP_CHARS);
  const said = clipped(content.map(partText).join(""), CLIP_CHARS);
  return spaced("failed", why, said === why ? "" : said);
}

/** A gRPC status by its name; by its number where that is none of ours. */
function statusText(status: number): string {
  return codeOfGrpcStatus(status)?.toUpperCase() ?? `status ${status}`;
}

const LIFECYCLES: Readonly<Record<number, string>> = {
  [Lifecycle_Kind.LIFECYCLE_SUSPEND]: "SUSPEND",
  [Lifecycle_Kind.LIFECYCLE_RESUME]: "RESUME",
  [Lifecycle_Kind.LIFECYCLE_FORK]: "FORK",
  [Lifecycle_Kind.LIFECYCLE_BASELINE]: "BASELINE",
  [Lifecycle_Kind.LIFECYCLE_CANCEL]: "CANCEL",
  [Lifecycle_Kind.LIFECYCLE_DELETE]: "DELETE",
};

/** An output says what was said; an input also says who, when it was not the user. */
function messageDetail(event: Event, message: Message): string {
  const text = messageLine(message);
  return event.kind === EventKind.EVENT_INPUT && message.role !== "user" ? `${plainLine(message.role)}: ${text}` : text;
}

/** A message's text, with a mark for every part that is no text. */
export function messageLine(message: Message): string {
  return message.parts.map(partText).join("");
}

function partText({ part }: Part): string {
  switch (part.case) {
    case "text":
      return plain(part.value.text);
    case "file":
      return `[file ${plainLine(part.value.mime || part.value.name)}]`;
    case "data":
      return `[data ${clipped(JSON.stringify(part.value.data ?? {}), CLIP_CHARS)}]`;
    case "reasoning":
      return "[reasoning]";
    case "toolCall":
      return `[calls ${plainLine(part.value.tool)}]`;
    case "toolResult":
      return `[result ${plainLine(part.value.id)}]`;
    case undefined:
      return "[empty]";
  }
}

function usageDetail(usage: Usage): string {
  const reasoning = usage.reasoningTokens === 0n ? "" : `${usage.reasoningTokens} reasoning`;
  return spaced(plainLine(usage.model), `${usage.inputTokens} in`, `${usage.outputTokens} out`, reasoning);
}

function spaced(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("  ");
}
