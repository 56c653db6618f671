/**
 * Sketches of model requests. A MODEL_CALL records the hash of what was sent, never the messages themselves. So that a divergence can
 * be shown as a readable difference, and an auditor can see what a model was told, a sketch is kept beside the record: which
 * recorded messages were sent, and in full only what no record has.
 *
 * Invariants:
 * - A sketch is outside the chain and can be wrong (a harness may change an object that it was given); the recorded input hash
 *   tells whether the request that is rebuilt from it is the one that was sent.
 * - It costs what is new: a request that continues the one before it names that one and the messages after it (`last-requests.ts`).
 */

import { create, fromBinary } from "@bufbuild/protobuf";
import type { Seq, SessionUid } from "../base/ids.ts";
import { seqOf } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { inputHash } from "../canon/index.ts";
import { MessageSchema, PartSchema, type ModelCall } from "../gen/agentsessions/v1/common_pb.ts";
import { RequestSketchSchema, type RequestSketch, type SketchedMessage } from "../gen/holdfast/v1/beside_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import type { Message, ModelRequest, ToolResult } from "../spi/index.ts";
import { eventAt } from "./host-tools.ts";

/** Which record the object of a message or of a result came from; it lives as long as the object does. */
export class MessageOrigins {
  readonly #origins = new WeakMap<Message | ToolResult, { readonly session: SessionUid; readonly seq: Seq }>();

  note(recorded: Message | ToolResult, session: SessionUid, seq: Seq): void {
    this.#origins.set(recorded, { session, seq });
  }

  /** Where in the journal of `session` a message is; undefined when it is not known. */
  sourceOf(message: Message, session: SessionUid): RecordedSource | undefined {
    const seq = this.#seqOf(message, session);
    if (seq !== undefined) return { kind: "message", seq };
    if (message.role !== "tool" || message.parts.length === 0) return undefined;
    const seqs: Seq[] = [];
    for (const { part } of message.parts) {
      const resultSeq = part.case === "toolResult" ? this.#seqOf(part.value, session) : undefined;
      if (resultSeq === undefined) return undefined;
      seqs.push(resultSeq);
    }
    return { kind: "results", seqs };
  }

  #seqOf(recorded: Message | ToolResult, session: SessionUid): Seq | undefined {
    const origin = this.#origins.get(recorded);
    return origin?.session === session ? origin.seq : undefined;
  }
}

/** Where the content of a message is recorded. */
export type RecordedSource =
  | { readonly kind: "message"; readonly seq: Seq }
  /** A message of role `tool`, of the results at these seqs. */
  | { readonly kind: "results"; readonly seqs: readonly Seq[] };

/** A message as a sketch has it: in full only where no record has it. */
export function sketched(message: Message, source: RecordedSource | undefined): SketchedMessage {
  return { $typeName: "holdfast.v1.SketchedMessage", source: sourceIn(message, source) };
}

function sourceIn(message: Message, source: RecordedSource | undefined): SketchedMessage["source"] {
  switch (source?.kind) {
    case "message":
      return { case: "seq", value: BigInt(source.seq) };
    case "results":
      return { case: "results", value: { $typeName: "holdfast.v1.RecordedResults", seqs: source.seqs.map(BigInt) } };
    case undefined:
      return { case: "message", value: message };
  }
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

async function resolve(journal: JournalStore, session: SessionUid, sources: readonly SketchedMessage[]): Promise<Message[] | undefined> {
  const messages: Message[] = [];
  for (const { source } of sources) {
    const message = await resolveOne(journal, session, source);
    if (message === undefined) return undefined;
    messages.push(message);
  }
  return messages;
}

async function resolveOne(journal: JournalStore, session: SessionUid, source: SketchedMessage["source"]): Promise<Message | undefined> {
  switch (source.case) {
    case "message":
      return source.value;
    case "seq": {
      const body = (await eventAt(journal, session, seqOf(source.value)))?.body;
      return body?.case === "message" ? body.value : undefined;
    }
    case "results":
      return recordedResults(
        journal,
        session,
        source.value.seqs.map((seq) => seqOf(seq)),
      );
    // A later version may know more sources.
    case undefined:
      return undefined;
  }
}

async function recordedResults(journal: JournalStore, session: SessionUid, seqs: readonly Seq[]): Promise<Message | undefined> {
  const message = create(MessageSchema, { role: "tool" });
  for (const seq of seqs) {
    const body = (await eventAt(journal, session, seq))?.body;
    if (body?.case !== "result") return undefined;
    message.parts.push(create(PartSchema, { part: { case: "toolResult", value: body.value } }));
  }
  return message;
}
