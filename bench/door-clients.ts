/** Clients of the interactive door that cost as little as they can: streams of grpc-js, whose readers stop when they are told to. */

import { create, toBinary, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ClientDuplexStream } from "@grpc/grpc-js";
import { AgentService, SessionRequestSchema, SessionResponseSchema, type SessionResponse } from "../src/gen/roz/v1/agent_pb.ts";

/** What a client says. */
export type Saying = Exclude<NonNullable<MessageInitShape<typeof SessionRequestSchema>["request"]>, { readonly case?: undefined }>;
type Heard = SessionResponse["response"];

const PATH = `/${AgentService.typeName}/${AgentService.method.streamSession.name}`;
const OPTIONS = { "grpc.max_receive_message_length": -1, "grpc.use_local_subchannel_pool": 1, "grpc.enable_http_proxy": 0 };

/** One connection. */
export class DoorConnection implements Disposable {
  readonly #client: Client;

  /** The address is a server's URL. */
  constructor(url: string) {
    this.#client = new Client(new URL(url).host, credentials.createInsecure(), OPTIONS);
  }

  open(): DoorStream {
    const call = this.#client.makeBidiStreamRequest(
      PATH,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => bytes,
      new Metadata(),
    );
    return new DoorStream(call);
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

/** One stream. */
export class DoorStream {
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>;
  readonly #waiting = new Set<(heard: Heard | undefined) => void>();
  readonly #ended = Promise.withResolvers<void>();
  /** Bytes of text that were heard. */
  textBytes = 0;

  constructor(call: ClientDuplexStream<Uint8Array, Uint8Array>) {
    this.#call = call;
    call.on("data", (bytes: Uint8Array) => this.#hear(bytes));
    call.on("error", () => this.#tell(undefined));
    call.on("end", () => this.#tell(undefined));
    call.on("status", () => this.#ended.resolve());
  }

  say(request: Saying): void {
    this.#call.write(toBinary(SessionRequestSchema, create(SessionRequestSchema, { request })));
  }

  /** Resolves with the first message of a kind that comes from now on. Rejects when the stream ends before, or says an error. */
  next(kind: NonNullable<Heard["case"]>): Promise<Heard> {
    return new Promise((resolve, reject) => {
      const look = (heard: Heard | undefined): void => {
        if (heard === undefined || (heard.case === "error" && kind !== "error"))
          reject(new Error(`a stream said ${wordOf(heard)}, and not ${kind}`));
        else if (heard.case === kind) resolve(heard);
        else return;
        this.#waiting.delete(look);
      };
      this.#waiting.add(look);
    });
  }

  /** Starts a session; its uid. */
  async start(model?: string): Promise<string> {
    const started = this.next("sessionStarted");
    this.say({ case: "start", value: model === undefined ? {} : { model } });
    const heard = await started;
    return heard.case === "sessionStarted" ? heard.value.sessionId : "";
  }

  /** Reads nothing more until `read`. */
  stall(): void {
    this.#call.pause();
  }

  read(): void {
    this.#call.resume();
  }

  /** Says nothing more. Resolves when the server has ended the stream. */
  finish(): Promise<void> {
    this.#call.end();
    return this.#ended.promise;
  }

  cut(): void {
    this.#call.cancel();
  }

  #hear(bytes: Uint8Array): void {
    const { response } = fromBinary(SessionResponseSchema, bytes);
    if (response.case === "textDelta") this.textBytes += response.value.content.length;
    this.#tell(response);
  }

  #tell(heard: Heard | undefined): void {
    for (const look of this.#waiting) look(heard);
  }
}

function wordOf(heard: Heard | undefined): string {
  return heard?.case === "error" ? `${heard.value.code} (${heard.value.message})` : (heard?.case ?? "nothing more");
}
