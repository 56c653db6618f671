/** `holdfast.v1.HarnessHost` for tests: histories and tokens of the executions that credentials were given out for. */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type sendUnaryData, type ServerUnaryCall, type ServerWritableStream } from "@grpc/grpc-js";
import { HoldfastError, toHoldfastError, type Seq } from "../../base/index.ts";
import { HarnessHost } from "../../gen/holdfast/v1/harness_host_pb.ts";
import {
  HistoryPageSchema,
  MintTokenRequestSchema,
  MintTokenResponseSchema,
  ReadHistoryRequestSchema,
} from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { rawMethod, statusOf } from "../../grpc/index.ts";
import type { HostGrant } from "../../harness-wire/index.ts";
import type { Start } from "../../spi/index.ts";

type Read = ServerWritableStream<Uint8Array, Uint8Array>;
type Mint = ServerUnaryCall<Uint8Array, Uint8Array>;

/** A host's services on a port of their own. */
export class HostServices implements AsyncDisposable {
  readonly #server = new Server();
  readonly #starts = new Map<string, Start>();
  #address = "";
  #granted = 0;

  /** How many credentials are good now. */
  get open(): number {
    return this.#starts.size;
  }

  async listen(): Promise<this> {
    const { readHistory, mintToken } = HarnessHost.method;
    this.#server.addService(
      { ReadHistory: rawMethod(readHistory), MintToken: rawMethod(mintToken) },
      {
        ReadHistory: (call: Read) => void this.#read(call),
        MintToken: (call: Mint, callback: sendUnaryData<Uint8Array>) => void this.#mint(call, callback),
      },
    );
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    this.#address = `127.0.0.1:${port}`;
    return this;
  }

  /** Gives out a credential for one execution, good until it is disposed of. */
  readonly grant = (start: Start): HostGrant & Disposable => {
    const credential = `credential-${++this.#granted}`;
    this.#starts.set(credential, start);
    return { address: this.#address, credential, [Symbol.dispose]: () => void this.#starts.delete(credential) };
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.forceShutdown();
  }

  #startOf(call: Read | Mint): Start {
    const [value] = call.metadata.get("authorization");
    const start = this.#starts.get(String(value).replace("Bearer ", ""));
    if (start === undefined) throw new HoldfastError("unauthenticated", "authorization: must be the credential of an execution that runs");
    return start;
  }

  async #read(call: Read): Promise<void> {
    try {
      const { fromSeq, toSeq } = fromBinary(ReadHistoryRequestSchema, call.request);
      const { history } = this.#startOf(call);
      const range = { fromSeq: Number(fromSeq) as Seq, toSeq: (toSeq === 0n ? history.lastSeq : Number(toSeq)) as Seq };
      for await (const { firstSeq, events } of history.read(range)) {
        const page = create(HistoryPageSchema, { firstSeq: BigInt(firstSeq), events: [...events] });
        if (!call.write(toBinary(HistoryPageSchema, page))) await new Promise<void>((resolve) => call.once("drain", resolve));
      }
      call.end();
    } catch (error) {
      call.emit("error", statusOf(toHoldfastError(error)));
    }
  }

  async #mint(call: Mint, callback: sendUnaryData<Uint8Array>): Promise<void> {
    try {
      const { audience } = fromBinary(MintTokenRequestSchema, call.request);
      const token = await this.#startOf(call).identity.mintToken?.(audience);
      callback(null, toBinary(MintTokenResponseSchema, create(MintTokenResponseSchema, { token: token ?? "" })));
    } catch (error) {
      callback(statusOf(toHoldfastError(error)));
    }
  }
}
