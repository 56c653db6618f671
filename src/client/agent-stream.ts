/** One interactive stream: requests in, events out, for as long as its connection holds. `AgentSession` holds a conversation over many. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import { AgentService, SessionRequestSchema, type SessionRequest, type SessionResponse } from "../gen/roz/v1/agent_pb.ts";
import { agentEventsOf, type AgentEvent } from "./agent-events.ts";
import { wireSeq, type SeqLike } from "./seqs.ts";
import type { CallOptions, Duplex, Transport } from "./transport.ts";

/** What a client sends: one of the alternatives of `roz.v1.SessionRequest`, as `{ case: "ping", value: {} }`. */
export type AgentRequest = Exclude<NonNullable<MessageInitShape<typeof SessionRequestSchema>["request"]>, { readonly case?: undefined }>;

/** Which session a stream is of. */
export interface AgentStreamOptions extends CallOptions {
  /** The uid of a session to go on with. Left out: the first request is `start`, and makes one. */
  readonly session?: string | undefined;
  /**
   * With `session`: the last seq that was seen; everything after it is told first. Left out: from the start of the open turn, nothing where
   * there is none.
   */
  readonly fromSeq?: SeqLike | undefined;
}

/** What a stream was attached to. */
export interface AgentAttachment {
  readonly session: string;
  /** The head of its journal when the stream was attached. */
  readonly headSeq: bigint;
}

/**
 * A stream that is open. Its events are iterated once, and end when the server has ended the stream; they reject with a HoldfastError when the
 * connection was lost (UNAVAILABLE) or the stream was refused. Disposing of it leaves the session as it is: a turn goes on without its
 * client until it needs it.
 */
export class AgentStream implements AsyncIterable<AgentEvent>, AsyncDisposable {
  readonly #call: Duplex<SessionRequest, SessionResponse>;
  readonly #events: AsyncGenerator<AgentEvent, void, undefined>;
  /** What the stream was attached to; undefined where the server does not say (one that is not Holdfast). Rejects as the events do. */
  readonly attached: Promise<AgentAttachment | undefined>;

  constructor(transport: Transport, options: AgentStreamOptions) {
    if (transport.duplex === undefined) {
      throw new HoldfastError("unimplemented", "transport: it must have streams in both directions, as holdfast/client/node has");
    }
    const { signal, timeoutMs } = options;
    this.#call = transport.duplex(AgentService.method.streamSession, { signal, timeoutMs, metadata: metadataOf(options) });
    this.attached = this.#call.headers.then(attachmentOf);
    this.attached.catch(() => undefined);
    this.#events = eventsOf(this.#call.responses);
  }

  [Symbol.asyncIterator](): AsyncGenerator<AgentEvent, void, undefined> {
    return this.#events;
  }

  /** Sends a request after those before it. Resolves when another may follow; whether it was refused is told by the events. */
  send(request: AgentRequest): Promise<void> {
    return this.#call.send(create(SessionRequestSchema, { request }));
  }

  /** Says that nothing more is sent. */
  end(): void {
    this.#call.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#call[Symbol.asyncDispose]();
  }
}

function metadataOf({ session, fromSeq }: AgentStreamOptions): Readonly<Record<string, string>> {
  if (session === undefined) return {};
  return {
    "holdfast-session": session,
    ...(fromSeq === undefined ? {} : { "holdfast-from-seq": wireSeq(fromSeq, "fromSeq").toString() }),
  };
}

function attachmentOf(headers: ReadonlyMap<string, string>): AgentAttachment | undefined {
  const session = headers.get("holdfast-session");
  const seq = headers.get("holdfast-seq");
  if (session === undefined || seq === undefined || !/^\d{1,18}$/.test(seq)) return undefined;
  return { session, headSeq: BigInt(seq) };
}

async function* eventsOf(responses: AsyncIterable<SessionResponse>): AsyncGenerator<AgentEvent, void, undefined> {
  for await (const response of responses) yield* agentEventsOf(response);
}
