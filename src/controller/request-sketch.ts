/**
 * Sketches of model requests. A MODEL_CALL records the hash of what was sent, never the messages themselves. So that a divergence can
 * be shown as a readable difference, and an auditor can see what a model was told, a sketch is kept beside the record: which
 * recorded messages were sent, and in full only what no record has.
 *
 * Invariants:
 * - A sketch is outside the chain and can be wrong (a harness may change an object that it was given); the recorded input hash
 *   tells whether the request that is rebuilt from it is the one that was sent.
 * - It costs what is new: a request that continues the one before it names that one and the messages after it.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Seq, SessionUid } from "../base/ids.ts";
import { seqOf } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { decodeLogRecord, inputHash } from "../canon/index.ts";
import { MessageSchema, ToolDefinitionSchema, type ModelCall } from "../gen/agentsessions/v1/common_pb.ts";
import { RequestSketchSchema, SketchedMessageSchema, type RequestSketch, type SketchedMessage } from "../gen/holdfast/v1/beside_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import type { Message, ModelRequest, ToolDefinition } from "../spi/index.ts";

/** Which record a message object came from; it lives as long as the object does. */
export class MessageOrigins {
  readonly #origins = new WeakMap<Message, { readonly session: SessionUid; readonly seq: Seq }>();

  note(message: Message, session: SessionUid, seq: Seq): void {
    this.#origins.set(message, { session, seq });
  }

  /** The seq of the record of `session` that has this message; undefined when it is not known. */
  seqOf(message: Message, session: SessionUid): Seq | undefined {
    const origin = this.#origins.get(message);
    return origin?.session === session ? origin.seq : undefined;
  }
}

/** The last request of a session, in keys. */
interface LastRequest {
  readonly seq: Seq;
  readonly messageKeys: readonly string[];
  readonly toolsKey: string;
}

/** Sketches requests; remembers the last one of each session, within bounds. */
export class RequestSketcher {
  readonly #origins: MessageOrigins;
  readonly #digest: Digest;
  readonly #keysMax: number;
  readonly #last = new Map<SessionUid, LastRequest>();
  #keys = 0;

  constructor(options: { readonly origins: MessageOrigins; readonly digest: Digest; readonly keysMax: number }) {
    this.#origins = options.origins;
    this.#digest = options.digest;
    this.#keysMax = options.keysMax;
  }

  /** The sketch of a request whose MODEL_CALL will have `seq`. */
  sketch(session: SessionUid, seq: Seq, request: ModelRequest): Uint8Array {
    const last = this.#last.get(session);
    // One that was remembered for a commit that failed is not on record.
    const base = last !== undefined && last.seq < seq ? last : undefined;
    const messageKeys = request.messages.map((message) => this.#keyOf(message, session));
    const toolsKey = this.#toolsKey(request.tools ?? []);
    const kept = base === undefined ? 0 : commonLength(base.messageKeys, messageKeys);
    const toolsKept = base !== undefined && base.toolsKey === toolsKey;
    const sketch = create(RequestSketchSchema, {
      baseSeq: BigInt(kept > 0 || (toolsKept && toolsKey !== "") ? (base?.seq ?? 0) : 0),
      keptMessages: kept,
      added: request.messages.slice(kept).map((message) => this.#sketched(message, session)),
    });
    if (toolsKept) sketch.toolsKept = toolsKey !== "";
    else sketch.tools = [...(request.tools ?? [])];
    if (request.toolChoice !== undefined) sketch.toolChoice = request.toolChoice;
    this.#remember(session, { seq, messageKeys, toolsKey });
    return toBinary(RequestSketchSchema, sketch);
  }

  #sketched(message: Message, session: SessionUid): SketchedMessage {
    const seq = this.#origins.seqOf(message, session);
    return create(SketchedMessageSchema, {
      source: seq === undefined ? { case: "message", value: message } : { case: "seq", value: BigInt(seq) },
    });
  }

  #keyOf(message: Message, session: SessionUid): string {
    const seq = this.#origins.seqOf(message, session);
    return seq === undefined ? this.#digest.sha256Hex(toBinary(MessageSchema, message)) : `${seq}`;
  }

  #toolsKey(tools: readonly ToolDefinition[]): string {
    if (tools.length === 0) return "";
    return this.#digest.sha256Hex(tools.map((tool) => this.#digest.sha256Hex(toBinary(ToolDefinitionSchema, tool))).join());
  }

  #remember(session: SessionUid, last: LastRequest): void {
    this.#forget(session);
    this.#last.set(session, last);
    this.#keys += 1 + last.messageKeys.length;
    for (const oldest of this.#last.keys()) {
      if (this.#keys <= this.#keysMax) return;
      this.#forget(oldest);
    }
  }

  #forget(session: SessionUid): void {
    const last = this.#last.get(session);
    if (last === undefined) return;
    this.#keys -= 1 + last.messageKeys.length;
    this.#last.delete(session);
  }
}

function commonLength(left: readonly string[], right: readonly string[]): number {
  let length = 0;
  while (length < left.length && length < right.length && left[length] === right[length]) length += 1;
  return length;
}

/** A request that was rebuilt from what is kept of it. */
export interface RebuiltRequest {
  readonly request: ModelRequest;
  /** Its hash is the recorded one: this is what was sent. */
  readonly whole: boolean;
}

/** The longest chain of sketches that a rebuild follows. */
const CHAIN_MAX = 100_000;

/** Rebuilds the request of the MODEL_CALL at `seq` as far as it is known; undefined where nothing is kept of it. */
export async function rebuildRequest(
  journal: JournalStore,
  digest: Digest,
  call: { readonly session: SessionUid; readonly seq: Seq; readonly recorded: ModelCall },
): Promise<RebuiltRequest | undefined> {
  const chain = await sketchChain(journal, call.session, call.seq);
  const [sketch] = chain;
  if (sketch === undefined) return undefined;
  const messages = await resolve(journal, call.session, sketchedMessages(chain));
  if (messages === undefined) return undefined;
  const tools = chain.find((link) => !link.toolsKept)?.tools ?? [];
  const { model, params } = call.recorded;
  const request: ModelRequest = { model, messages, params, tools, toolChoice: sketch.toolChoice };
  return { request, whole: inputHash(request, digest) === call.recorded.inputHash };
}

/** The sketches from `seq` back to one without a base, newest first; empty where one is missing. */
async function sketchChain(journal: JournalStore, session: SessionUid, seq: Seq): Promise<readonly RequestSketch[]> {
  const chain: RequestSketch[] = [];
  for (let at: Seq = seq; at > 0 && chain.length < CHAIN_MAX;) {
    const aside = (await journal.readAsides({ session, fromSeq: at, toSeq: at })).get(at);
    if (aside === undefined) return [];
    const sketch = fromBinary(RequestSketchSchema, aside);
    chain.push(sketch);
    const base = seqOf(sketch.baseSeq);
    if (base >= at) return [];
    at = base;
  }
  return chain;
}

/** Oldest first, each sketch cuts what came before it to what it keeps and adds its own. */
function sketchedMessages(chain: readonly RequestSketch[]): readonly SketchedMessage[] {
  const messages: SketchedMessage[] = [];
  for (const { keptMessages, added } of chain.toReversed()) {
    messages.length = Math.min(messages.length, keptMessages);
    for (const message of added) messages.push(message);
  }
  return messages;
}

async function resolve(journal: JournalStore, session: SessionUid, sketched: readonly SketchedMessage[]): Promise<Message[] | undefined> {
  const messages: Message[] = [];
  for (const { source } of sketched) {
    const message = source.case === "seq" ? await recordedMessage(journal, session, seqOf(source.value)) : source.value;
    if (message === undefined) return undefined;
    messages.push(message);
  }
  return messages;
}

async function recordedMessage(journal: JournalStore, session: SessionUid, seq: Seq): Promise<Message | undefined> {
  for await (const page of journal.read({ session, fromSeq: seq, toSeq: seq })) {
    for (const record of page) {
      const body = decodeLogRecord(record.bytes).event?.body;
      if (body?.case === "message") return body.value;
    }
  }
  return undefined;
}
