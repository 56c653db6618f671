/**
 * What each session asked a model last, within bounds: the next request of the session is hashed and sketched as what is new in it.
 *
 * Invariants:
 * - The input hash is the one of `inputHash`, whatever is remembered (`canon/input-prefix.ts`).
 * - A sketch names only a request whose MODEL_CALL comes before its own. One that was remembered for a commit that failed is not on record,
 *   and its seq is taken by another.
 * - What is remembered by seqs holds from turn to turn while the one begins at the very record with which the other ended here: a uid can come
 *   back with other records (reclaimed here, then imported again), and another host may have gone on.
 */

import { toBinary } from "@bufbuild/protobuf";
import type { Seq, SessionUid } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { encodeRequestSketch, InputPrefix } from "../canon/index.ts";
import { MessageSchema, ToolDefinitionSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { Head } from "../journal/index.ts";
import type { Message, ModelRequest, ToolDefinition } from "../spi/index.ts";
import { sketched, type MessageOrigins } from "./request-sketch.ts";

/** The beginning of a session's requests: messages that cannot change, and what tells them from others, one by one. */
interface Beginning {
  readonly prefix: InputPrefix;
  readonly keys: string[];
}

/** The last request that was sketched, in keys. */
interface LastRequest {
  readonly seq: Seq;
  /** The keys of what it began with; there may be more by now. */
  readonly beginning: readonly string[];
  readonly begun: number;
  /** The keys of its further messages. */
  readonly rest: readonly string[];
  readonly toolsKey: string;
}

/** What is remembered of a session, and how much that is. */
interface Remembered {
  readonly beginning: Beginning | undefined;
  readonly last: LastRequest | undefined;
  readonly keys: number;
  readonly bytes: number;
  /** With what the session's last turn here ended; undefined while one runs, and where that is not known. */
  readonly head?: Head | undefined;
}

/** A request that is about to be made. */
export interface AskedRequest {
  readonly inputHash: string;
  /** Its sketch, where its MODEL_CALL will have `seq`. To be asked for at once, before another request of the session. */
  readonly sketch: (seq: Seq) => Uint8Array;
}

export interface LastRequestsOptions {
  readonly origins: MessageOrigins;
  readonly digest: Digest;
  /** Messages of all sessions that are remembered. */
  readonly keysMax: number;
  /** Characters and bytes of the messages that are not hashed again, of all sessions. */
  readonly bytesMax: number;
}

/** The last requests of the sessions that asked last. */
export class LastRequests {
  readonly #options: LastRequestsOptions;
  readonly #toolKeys = new WeakMap<ToolDefinition, string>();
  /** The tools of the last request that had any, whatever its session: most have the host's. */
  #lastTools: { readonly tools: readonly ToolDefinition[]; readonly key: string } = { tools: [], key: "" };
  readonly #sessions = new Map<SessionUid, Remembered>();
  #keys = 0;
  #bytes = 0;

  constructor(options: LastRequestsOptions) {
    this.#options = options;
  }

  /** A turn of the session has begun behind `head`; undefined where that is not known. */
  began(session: SessionUid, head: Head | undefined): void {
    const known = this.#sessions.get(session)?.head;
    if (known === undefined || known.seq !== head?.seq || known.hash !== head.hash) this.#forget(session);
  }

  /** A turn of the session has ended with `head`; undefined where that is not known. */
  ended(session: SessionUid, head: Head | undefined): void {
    const known = this.#sessions.get(session);
    if (known !== undefined) this.#sessions.set(session, { ...known, head });
  }

  /** A request that a session is about to make. Throws INVALID_ARGUMENT as `inputHash` does. */
  asked(session: SessionUid, request: ModelRequest): AskedRequest {
    const beginning = this.#beginningOf(session, request);
    return {
      inputHash: beginning.prefix.inputHash(request),
      sketch: (seq) => this.#sketch(session, seq, request, beginning),
    };
  }

  #sketch(session: SessionUid, seq: Seq, { messages, tools = [], toolChoice }: ModelRequest, { keys }: Beginning): Uint8Array {
    const rest = messages.slice(keys.length).map((message) => this.#keyOf(message, session));
    const next: LastRequest = { seq, beginning: keys, begun: keys.length, rest, toolsKey: this.#toolsKey(tools) };
    const last = this.#sessions.get(session)?.last;
    const base = last !== undefined && last.seq < seq ? last : undefined;
    const kept = base === undefined ? 0 : commonLength(base, next);
    const toolsKept = base !== undefined && base.toolsKey === next.toolsKey;
    this.#keep(session, this.#sessions.get(session)?.beginning, next);
    return encodeRequestSketch({
      baseSeq: BigInt(kept > 0 || (toolsKept && next.toolsKey !== "") ? (base?.seq ?? 0) : 0),
      keptMessages: kept,
      added: messages.slice(kept).map((message) => sketched(message, this.#options.origins.sourceOf(message, session))),
      toolsKept: toolsKept && next.toolsKey !== "",
      tools: toolsKept ? [] : [...tools],
      toolChoice,
    });
  }

  /** What the request begins with that cannot change: what is known of the session's last one and more, where it goes on from that. */
  #beginningOf(session: SessionUid, request: ModelRequest): Beginning {
    const { digest, bytesMax } = this.#options;
    const remembered = this.#sessions.get(session);
    const known = remembered?.beginning;
    const isContinued = known !== undefined && known.prefix.isBeginningOf(request);
    const beginning = isContinued ? known : { prefix: new InputPrefix(request.model, digest), keys: [] };
    const { prefix, keys } = beginning;
    prefix.extend(request, bytesMax);
    if (keys.length === prefix.length) return beginning;
    while (keys.length < prefix.length) keys.push(this.#keyOf(request.messages[keys.length]!, session));
    this.#keep(session, beginning, remembered?.last);
    return beginning;
  }

  #keyOf(message: Message, session: SessionUid): string {
    const { origins, digest } = this.#options;
    const source = origins.sourceOf(message, session);
    switch (source?.kind) {
      case "message":
        return `${source.seq}`;
      case "results":
        return `results ${source.seqs.join()}`;
      case undefined:
        return digest.sha256Hex(toBinary(MessageSchema, message));
    }
  }

  #toolsKey(tools: readonly ToolDefinition[]): string {
    if (tools.length === 0) return "";
    const last = this.#lastTools;
    if (last.tools.length === tools.length && tools.every((tool, index) => tool === last.tools[index])) return last.key;
    const key = this.#options.digest.sha256Hex(tools.map((tool) => this.#toolKey(tool)).join());
    this.#lastTools = { tools: [...tools], key };
    return key;
  }

  /** Definitions are not to be changed; a sketch that was made of one that was is told by its hash. */
  #toolKey(tool: ToolDefinition): string {
    const known = this.#toolKeys.get(tool);
    if (known !== undefined) return known;
    const key = this.#options.digest.sha256Hex(toBinary(ToolDefinitionSchema, tool));
    this.#toolKeys.set(tool, key);
    return key;
  }

  #keep(session: SessionUid, beginning: Beginning | undefined, last: LastRequest | undefined): void {
    this.#forget(session);
    const keys = 1 + (beginning?.keys.length ?? 0) + (last?.rest.length ?? 0);
    const bytes = beginning?.prefix.size ?? 0;
    this.#sessions.set(session, { beginning, last, keys, bytes });
    this.#keys += keys;
    this.#bytes += bytes;
    const { keysMax, bytesMax } = this.#options;
    for (const oldest of this.#sessions.keys()) {
      if (this.#keys <= keysMax && this.#bytes <= bytesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(session: SessionUid): void {
    const known = this.#sessions.get(session);
    if (known === undefined) return;
    this.#keys -= known.keys;
    this.#bytes -= known.bytes;
    this.#sessions.delete(session);
  }
}

/** With how many of the same messages two requests begin. */
function commonLength(one: LastRequest, other: LastRequest): number {
  const count = Math.min(countOf(one), countOf(other));
  let length = one.beginning === other.beginning ? Math.min(one.begun, other.begun) : 0;
  while (length < count && keyAt(one, length) === keyAt(other, length)) length += 1;
  return length;
}

function countOf({ begun, rest }: LastRequest): number {
  return begun + rest.length;
}

function keyAt({ beginning, begun, rest }: LastRequest, index: number): string | undefined {
  return index < begun ? beginning[index] : rest[index - begun];
}
