/** What the interactive stream (`roz.v1.AgentService`) tells, as the client hands it out. */

import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { StreamCursorSchema } from "../gen/holdfast/v1/agent_stream_pb.ts";
import type {
  ActivityUpdate,
  ContextCompacted,
  Keepalive,
  PresenceHint,
  SessionError,
  SessionResponse,
  SessionStarted,
  TextDelta,
  ThinkingDelta,
  ToolRequest,
  TurnComplete,
} from "../gen/roz/v1/agent_pb.ts";

/** One event of a stream. What is beside `kind` is the protocol's own message. */
export type AgentEvent =
  /** The session is open, or was attached to. */
  | { readonly kind: "started"; readonly started: SessionStarted }
  /** A piece of the answer. */
  | { readonly kind: "text"; readonly delta: TextDelta }
  /** A piece of the model's reasoning. */
  | { readonly kind: "thinking"; readonly delta: ThinkingDelta }
  /** The client is to run a tool. */
  | { readonly kind: "tool-request"; readonly request: ToolRequest }
  /** The turn is over. All of its deltas came before. */
  | { readonly kind: "turn-complete"; readonly turn: TurnComplete }
  /** Something was refused or failed; the stream goes on, except after `unauthenticated`. `seq` is the cursor that came with it. */
  | { readonly kind: "error"; readonly error: SessionError; readonly seq: bigint | undefined }
  | { readonly kind: "keepalive"; readonly keepalive: Keepalive }
  | { readonly kind: "pong" }
  /** The context was made smaller. */
  | { readonly kind: "compacted"; readonly compacted: ContextCompacted }
  | { readonly kind: "presence"; readonly presence: PresenceHint }
  /** What the agent is doing; with the state `waiting_approval` the detail is the id of the call that a person is asked about. */
  | { readonly kind: "activity"; readonly activity: ActivityUpdate }
  /** Everything up to this seq of the session's journal was told before this event. */
  | { readonly kind: "cursor"; readonly seq: bigint };

/** The field of `roz.v1.SessionResponse` that has the cursor; clients that do not know it pass over it. */
const CURSOR_FIELD = 15_000;

/** The events in one response: what it says, then the cursor that it brings. A kind that this version does not know is passed over. */
export function agentEventsOf(response: SessionResponse): readonly AgentEvent[] {
  const seq = cursorOf(response);
  const said = saidBy(response, seq);
  return [...(said === undefined ? [] : [said]), ...(seq === undefined ? [] : [{ kind: "cursor", seq } as const])];
}

function saidBy({ response }: SessionResponse, seq: bigint | undefined): AgentEvent | undefined {
  switch (response.case) {
    case "sessionStarted":
      return { kind: "started", started: response.value };
    case "textDelta":
      return { kind: "text", delta: response.value };
    case "thinkingDelta":
      return { kind: "thinking", delta: response.value };
    case "toolRequest":
      return { kind: "tool-request", request: response.value };
    case "turnComplete":
      return { kind: "turn-complete", turn: response.value };
    case "error":
      return { kind: "error", error: response.value, seq };
    case "keepalive":
      return { kind: "keepalive", keepalive: response.value };
    case "pong":
      return { kind: "pong" };
    case "contextCompacted":
      return { kind: "compacted", compacted: response.value };
    case "presenceHint":
      return { kind: "presence", presence: response.value };
    case "activityUpdate":
      return { kind: "activity", activity: response.value };
    case undefined:
      return undefined;
  }
}

function cursorOf({ $unknown = [] }: SessionResponse): bigint | undefined {
  const field = $unknown.findLast(({ no, wireType }) => no === CURSOR_FIELD && wireType === WireType.LengthDelimited);
  // The bytes of an unknown field of this type begin with their length.
  return field === undefined ? undefined : fromBinary(StreamCursorSchema, new BinaryReader(field.data).bytes()).seq;
}
