/** A client of the interactive door's handler, without a transport: what it sent, what it heard, and how its line is cut. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Seq } from "../base/index.ts";
import { HoldfastError } from "../base/index.ts";
import { SessionRequestSchema, type SessionRequest, type SessionResponse } from "../gen/roz/v1/agent_pb.ts";
import type { AgentResponse, AgentService, Incoming, StreamContext } from "../service/index.ts";
import type { Caller } from "../spi/index.ts";

/** What a client says. */
export type Saying = Exclude<NonNullable<MessageInitShape<typeof SessionRequestSchema>["request"]>, { readonly case?: undefined }>;
/** The kinds of what it hears. */
export type Heard = NonNullable<SessionResponse["response"]["case"]>;
type ValueOf<Case extends Heard> = Extract<SessionResponse["response"], { readonly case: Case }>["value"];

export interface DoorClientOptions {
  readonly session?: string | undefined;
  readonly fromSeq?: number | string | undefined;
  readonly caller?: Caller | undefined;
  /** Called with each response as it leaves; what it waits for holds the reader up. */
  readonly onResponse?: ((response: AgentResponse, index: number) => Promise<void> | void) | undefined;
}

/** A stream that is open from the start. */
export class DoorClient {
  /** Everything that was heard, bare cursors among it. */
  readonly heard: AgentResponse[] = [];
  /** The headers of the answer; undefined before they came. */
  headers: Readonly<Record<string, string>> | undefined;
  /** Why the stream ended; undefined while it has not. */
  end: { readonly error: unknown } | undefined;
  readonly #requests = new RequestQueue();
  readonly #gone = new AbortController();
  readonly #reading: Promise<void>;
  #read = 0;
  #wake: () => void = () => undefined;

  constructor(service: Pick<AgentService, "streamSession">, options: DoorClientOptions = {}) {
    const metadata: Readonly<Record<string, string>> = {
      ...(options.session === undefined ? {} : { "holdfast-session": options.session }),
      ...(options.fromSeq === undefined ? {} : { "holdfast-from-seq": String(options.fromSeq) }),
    };
    const context: StreamContext = {
      caller: options.caller ?? { identity: undefined },
      signal: this.#gone.signal,
      metadata: (key) => metadata[key],
      announce: (headers) => void (this.headers = headers),
    };
    this.#reading = this.#readAll(service.streamSession(this.#requests, context), options.onResponse);
  }

  /** The session that the stream was attached to. */
  get session(): string {
    const session = this.headers?.["holdfast-session"];
    if (session === undefined) throw new Error("the stream is attached to no session");
    return session;
  }

  /** The cursor of what was heard last. */
  get seq(): Seq {
    return this.heard.at(-1)?.seq ?? (0 as Seq);
  }

  /** Requests that the server has not taken yet. */
  get unread(): number {
    return this.#requests.size;
  }

  say(request: Saying): void {
    this.#requests.push({ kind: "message", message: create(SessionRequestSchema, { request }) });
  }

  /** Sends something that is no request. */
  garble(error = new HoldfastError("invalid_argument", "request: is cut off, or is no protobuf", { field: "request" })): void {
    this.#requests.push({ kind: "malformed", error });
  }

  sayEmpty(): void {
    this.#requests.push({ kind: "message", message: create(SessionRequestSchema) });
  }

  /** The client has nothing more to say. */
  finish(): void {
    this.#requests.end();
  }

  /** The line is cut. Resolves when the server has noticed. */
  async cut(): Promise<void> {
    this.#gone.abort(new HoldfastError("cancelled", "the client went away"));
    this.#requests.end();
    await this.#reading;
  }

  /** The line breaks while the server reads from it, as a socket tells it. Resolves when the stream is over. */
  async reset(): Promise<void> {
    this.#requests.fail(new Error("Premature close"));
    await this.#reading;
  }

  /** The next thing of a kind that was not waited for yet; what comes before it is passed over. Throws where the stream ends first. */
  async next<Case extends Heard>(kind: Case, fits: (value: ValueOf<Case>) => boolean = () => true): Promise<ValueOf<Case>> {
    for (;;) {
      for (; this.#read < this.heard.length;) {
        const { response } = this.heard[this.#read++]!.response;
        if (response.case === kind && fits(response.value as ValueOf<Case>)) return response.value as ValueOf<Case>;
      }
      if (this.end !== undefined) throw new Error(`the stream has ended without ${kind}: ${this.story().join(", ")}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Resolves when the server has ended the stream. */
  async ended(): Promise<void> {
    await this.#reading;
  }

  /** All values of a kind. */
  all<Case extends Heard>(kind: Case): ValueOf<Case>[] {
    return this.heard.flatMap(({ response: { response } }) => (response.case === kind ? [response.value as ValueOf<Case>] : []));
  }

  /** The text that was heard. */
  get text(): string {
    return this.all("textDelta")
      .map(({ content }) => content)
      .join("");
  }

  /** What was heard, in short words; updates of activity and presence apart. */
  story(): string[] {
    return this.heard.flatMap(({ response: { response } }) => wordsOf(response));
  }

  async #readAll(responses: AsyncIterable<AgentResponse>, onResponse: DoorClientOptions["onResponse"]): Promise<void> {
    try {
      for await (const response of responses) {
        const index = this.heard.push(response) - 1;
        this.#wake();
        await onResponse?.(response, index);
      }
      this.end = { error: undefined };
    } catch (error) {
      this.end = { error };
    }
    this.#wake();
  }
}

function wordsOf(response: SessionResponse["response"]): string[] {
  switch (response.case) {
    case "sessionStarted":
      return ["started"];
    case "textDelta":
      return [`text ${response.value.content}`];
    case "thinkingDelta":
      return [`thinking ${response.value.content}`];
    case "toolRequest":
      return [`request ${response.value.toolName} ${response.value.toolCallId}`];
    case "turnComplete":
      return [`complete ${response.value.messageId} ${response.value.stopReason}`];
    case "error":
      return [`error ${response.value.code}`];
    case "contextCompacted":
      return [`compacted ${response.value.level}`];
    case "pong":
      return ["pong"];
    case "keepalive":
    case "presenceHint":
    case "activityUpdate":
    case undefined:
      return [];
  }
}

/** Requests of one stream: any number may wait. */
class RequestQueue implements AsyncIterable<Incoming<SessionRequest>> {
  readonly #waiting: Incoming<SessionRequest>[] = [];
  #isEnded = false;
  #failure: Error | undefined;
  #wake: () => void = () => undefined;

  get size(): number {
    return this.#waiting.length;
  }

  push(request: Incoming<SessionRequest>): void {
    this.#waiting.push(request);
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  fail(failure: Error): void {
    this.#failure = failure;
    this.end();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Incoming<SessionRequest>, void, undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) yield next;
      else if (this.#failure !== undefined) throw this.#failure;
      else if (this.#isEnded) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
