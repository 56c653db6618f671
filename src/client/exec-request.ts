/** A turn as a caller asks for it, and the request that is made of it. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { MessageSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import { ExecRequestSchema, type ExecRequest } from "../gen/agentsessions/v1/session_pb.ts";
import { wireSeq, type SeqLike } from "./seqs.ts";

/** An input of a turn: a text, which stands for a user's message, or a message. */
export type ExecInput = string | MessageInitShape<typeof MessageSchema>;

/** One turn. */
export interface ExecTurn {
  /** The session's uid; "" or left out creates a session first. */
  readonly session?: string | undefined;
  /** The turn's inputs, in order; none is a turn without input. */
  readonly inputs?: ExecInput | readonly ExecInput[] | undefined;
  /** The harness that runs this turn; left out, the session's. */
  readonly harness?: string | undefined;
  /** Opaque bytes for the harness (a text as its UTF-8), journaled verbatim: no place for secrets. */
  readonly config?: Uint8Array | string | undefined;
  /** The harness's own cursor. */
  readonly resumeFromSeq?: SeqLike | undefined;
  /** Set: the turn begins only if the session's last seq is this one, otherwise ABORTED and nothing is written. */
  readonly expectedLastSeq?: SeqLike | undefined;
  /** When the host cancels the turn, in whole seconds. It is the turn's own deadline, not the call's. */
  readonly deadline?: Date | undefined;
}

/** The request of a turn. */
export function execRequestOf(turn: ExecTurn): ExecRequest {
  const request = create(ExecRequestSchema, {
    session: turn.session ?? "",
    inputs: inputsOf(turn.inputs),
    harness: turn.harness ?? "",
    config: typeof turn.config === "string" ? new TextEncoder().encode(turn.config) : (turn.config ?? new Uint8Array()),
    resumeFromSeq: wireSeq(turn.resumeFromSeq, "resumeFromSeq"),
    deadlineUnix: turn.deadline === undefined ? 0n : BigInt(Math.ceil(turn.deadline.getTime() / 1000)),
  });
  if (turn.expectedLastSeq !== undefined) request.expectedLastSeq = wireSeq(turn.expectedLastSeq, "expectedLastSeq");
  return request;
}

function inputsOf(inputs: ExecTurn["inputs"]): Message[] {
  if (inputs === undefined) return [];
  const list: readonly ExecInput[] = isList(inputs) ? inputs : [inputs];
  return list.map(inputMessage);
}

/** The message of an input. */
export function inputMessage(input: ExecInput): Message {
  return create(MessageSchema, typeof input === "string" ? userText(input) : input);
}

function isList(inputs: ExecInput | readonly ExecInput[]): inputs is readonly ExecInput[] {
  return Array.isArray(inputs);
}

function userText(text: string): MessageInitShape<typeof MessageSchema> {
  return { role: "user", parts: [{ part: { case: "text", value: { text } } }] };
}
