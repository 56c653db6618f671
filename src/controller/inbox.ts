/**
 * Messages for a turn that runs, until its harness asks for them.
 *
 * Invariant: nothing here is durable, and nothing of it is acknowledged. Whoever sent a message is answered when it is on record.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { normaliseMessage } from "../canon/index.ts";
import { MessageSchema, ToolDefinitionSchema, ToolResultSchema, type Event } from "../gen/agentsessions/v1/common_pb.ts";
import {
  INBOX_TOOL,
  type HostTool,
  type IdentityRef,
  type Message,
  type ToolCall,
  type ToolExecutor,
  type ToolResult,
} from "../spi/index.ts";

/** The largest message, and what is handed out at once. */
const MESSAGE_BYTES_MAX = 64 * 1024;
/** Messages that wait; more are refused. */
const MESSAGES_MAX = 64;

/** A message on its way to a harness. */
export interface SteeringMessage {
  /** Tells it from every other one of the session. */
  readonly id: string;
  readonly message: Message;
  /** Who sent it; undefined where nobody is told apart. */
  readonly from: IdentityRef | undefined;
}

/** The inbox of one turn. */
export class Inbox {
  readonly #waiting: SteeringMessage[] = [];

  /** Throws RESOURCE_EXHAUSTED where too much waits. */
  put(message: SteeringMessage): void {
    if (this.#waiting.length >= MESSAGES_MAX) {
      throw new HoldfastError("resource_exhausted", `session: ${MESSAGES_MAX} messages wait for its turn already; retry later`);
    }
    this.#waiting.push(message);
  }

  /** Takes a message back that nobody has asked for yet. */
  withdraw(id: string): void {
    const index = this.#waiting.findIndex((message) => message.id === id);
    if (index >= 0) this.#waiting.splice(index, 1);
  }

  /** Hands out what waits, the oldest first, as much as a result holds. */
  take(callId: string): ToolResult {
    const taken: SteeringMessage[] = [];
    let leftBytes = MESSAGE_BYTES_MAX;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      leftBytes -= bytesOf(next.message);
      if (leftBytes < 0 && taken.length > 0) break;
      taken.push(next);
      this.#waiting.shift();
    }
    const messages = taken.map(({ id, from }) => ({ id, from: from?.subject ?? "" }));
    return create(ToolResultSchema, { id: callId, output: { messages }, content: taken.flatMap(({ message }) => message.parts) });
  }
}

/** A message as it can be handed to a turn. Throws INVALID_ARGUMENT, and RESOURCE_EXHAUSTED for one that is too large. */
export function steerable(message: Message | undefined): Message {
  if (message === undefined) throw invalidArgument("message", "must be given");
  if (message.role !== "user") throw invalidArgument("message.role", "must be user");
  if (message.parts.length === 0) throw invalidArgument("message.parts", "must have one part at least");
  for (const [index, { part }] of message.parts.entries()) {
    if (part.case === "text" || part.case === "data" || part.case === "file") continue;
    throw invalidArgument(`message.parts[${index}]`, "must be text, data or a file");
  }
  const normal = normaliseMessage(message, "message");
  if (bytesOf(normal) <= MESSAGE_BYTES_MAX) return normal;
  throw new HoldfastError("resource_exhausted", `message: must have at most ${MESSAGE_BYTES_MAX} bytes`, { field: "message" });
}

/** Whether an event is the record of a message that was handed out. */
export function handsOut({ body }: Event, id: string): boolean {
  if (body.case !== "result") return false;
  const messages = body.value.output?.["messages"];
  return Array.isArray(messages) && messages.some((each) => typeof each === "object" && each !== null && "id" in each && each["id"] === id);
}

const INBOX: HostTool = { definition: create(ToolDefinitionSchema, { name: INBOX_TOOL }), idempotent: true };

/** The host's tools and the inbox, which is not among those on offer. */
export function withInbox(executor: ToolExecutor | undefined, inbox: Inbox): ToolExecutor {
  return {
    list: () => executor?.list() ?? [],
    find: (name) => (name === INBOX_TOOL ? INBOX : executor?.find(name)),
    check: (call: ToolCall) => (call.tool === INBOX_TOOL ? undefined : executor?.check(call)),
    execute: async (call, run) => {
      if (call.tool === INBOX_TOOL) return inbox.take(call.id);
      if (executor === undefined) throw new HoldfastError("failed_precondition", "tool: this host runs no tools");
      return executor.execute(call, run);
    },
  };
}

function bytesOf(message: Message): number {
  return toBinary(MessageSchema, message).length;
}
