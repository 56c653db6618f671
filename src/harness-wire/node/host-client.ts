/**
 * A harness's client of `holdfast.v1.HarnessHost`: where a harness that is driven over the contract's own Connect pulls its history and
 * gets its tokens. Requests come in as the frames that a line would carry, and answers go back as such.
 */

import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ClientReadableStream } from "@grpc/grpc-js";
import { HarnessHost } from "../../gen/holdfast/v1/harness_host_pb.ts";
import {
  HistoryPageSchema,
  MintTokenRequestSchema,
  MintTokenResponseSchema,
  ReadHistoryRequestSchema,
  type HistoryPage,
  type MintTokenRequest,
  type MintTokenResponse,
  type ReadHistoryRequest,
} from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { clientMethod, errorOfStatus, type Encodable } from "../../grpc/index.ts";
import { HOST_FRAME_BYTES_MAX, wireErrorOf } from "../index.ts";
import { grpcTargetOf, harnessAddressOf, isLoopback } from "./address.ts";
import { clientChannel } from "./channel.ts";

/** Where answers go. */
export interface HostAnswers {
  readonly history: (page: HistoryPage) => void;
  readonly token: (token: MintTokenResponse) => void;
}

interface OpenRead {
  readonly call: ClientReadableStream<HistoryPage>;
  credit: number;
}

/** The host's services for one execution. */
export class HostClient implements Disposable {
  readonly #client: Client;
  readonly #credential: string;
  readonly #answers: HostAnswers;
  readonly #reads = new Map<number, OpenRead>();

  constructor(address: string, credential: string, answers: HostAnswers) {
    const parsed = harnessAddressOf(address, "holdfast-host");
    const channel = clientChannel(HOST_FRAME_BYTES_MAX, { local: isLoopback(parsed) });
    this.#client = new Client(grpcTargetOf(parsed), credentials.createInsecure(), channel);
    this.#credential = credential;
    this.#answers = answers;
  }

  /** Reads a part of the history, no faster than pages are asked for. */
  read(request: ReadHistoryRequest): void {
    const open = this.#reads.get(request.read);
    if (!request.more) return this.#open(request);
    if (open === undefined) return;
    if (request.pages === 0) return this.#giveUp(request.read, open);
    open.credit += request.pages;
    open.call.resume();
  }

  /** Asks for a token. */
  mint({ request, audience }: MintTokenRequest): void {
    const { path, requestSerialize, responseDeserialize } = clientMethod(HarnessHost.method.mintToken);
    const asked = create(MintTokenRequestSchema, { audience });
    this.#client.makeUnaryRequest(path, requestSerialize, responseDeserialize, asked, this.#metadata(), (error, response) => {
      const answer = response ?? create(MintTokenResponseSchema, { error: wireErrorOf(errorOfStatus(error)) });
      this.#answers.token({ ...answer, request });
    });
  }

  [Symbol.dispose](): void {
    for (const [read, open] of this.#reads) this.#giveUp(read, open);
    this.#client.close();
  }

  #open({ read, fromSeq, toSeq, pages }: ReadHistoryRequest): void {
    const { path, requestSerialize, responseDeserialize } = clientMethod(HarnessHost.method.readHistory);
    const call = this.#client.makeServerStreamRequest<Encodable<typeof ReadHistoryRequestSchema>, HistoryPage>(
      path,
      requestSerialize,
      responseDeserialize,
      create(ReadHistoryRequestSchema, { fromSeq, toSeq }),
      this.#metadata(),
    );
    const open: OpenRead = { call, credit: Math.max(1, pages) };
    this.#reads.set(read, open);
    const isOpen = (): boolean => this.#reads.get(read) === open;
    call.on("data", (page: HistoryPage) => {
      if (!isOpen()) return;
      open.credit -= 1;
      if (open.credit <= 0) call.pause();
      if (page.last) this.#reads.delete(read);
      this.#answers.history({ ...page, read });
    });
    const last = (error: unknown): void => {
      if (!isOpen()) return;
      this.#reads.delete(read);
      const init = error === undefined ? { read, last: true } : { read, last: true, error: wireErrorOf(errorOfStatus(error)) };
      this.#answers.history(create(HistoryPageSchema, init));
    };
    call.on("error", last);
    call.on("end", () => last(undefined));
  }

  #giveUp(read: number, { call }: OpenRead): void {
    this.#reads.delete(read);
    call.cancel();
  }

  #metadata(): Metadata {
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${this.#credential}`);
    return metadata;
  }
}
