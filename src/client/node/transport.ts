/**
 * The client's transport on Node: gRPC over grpc-js.
 *
 * Invariants:
 * - Everything a call rejects with is a HoldfastError, or the reason of the caller's signal.
 * - A stream is read no faster than its consumer takes it, and is cancelled when its consumer leaves it.
 */

import * as nodeTls from "node:tls";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import {
  Client,
  credentials,
  Metadata,
  type CallOptions as ChannelCallOptions,
  type ChannelCredentials,
  type ChannelOptions,
} from "@grpc/grpc-js";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import { clientMethod, errorOfStatus, rawClientMethod, type ClientMethodDefinition, type Encodable } from "../../grpc/index.ts";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import type { CallOptions, Duplex, DuplexOptions, Method, Transport } from "../transport.ts";
import { endpointOf, type Endpoint } from "./address.ts";
import { DuplexCall } from "./duplex.ts";
import { answered } from "./upload.ts";

/** How the server is known and how the client is. */
export interface TlsOptions {
  /** The authorities to trust, PEM. Default: those of Node. */
  readonly ca?: Uint8Array | string | undefined;
  /** The client's own certificate and key, PEM, for a server that asks for one. Both or neither. */
  readonly cert?: Uint8Array | string | undefined;
  readonly key?: Uint8Array | string | undefined;
  /** The name in the server's certificate, where it is not the host in the address. */
  readonly serverName?: string | undefined;
}

/** Where the server is and how it is spoken to. */
export interface NodeTransportOptions {
  /** `http://host:port`, `https://host:port`, `host:port` (cleartext) or `unix:///path`. */
  readonly address: string;
  /** The bearer token; a function is asked before every call, so a token can change. Over cleartext it can be read by others. */
  readonly token?: string | (() => string) | undefined;
  /** For `https://` only. */
  readonly tls?: TlsOptions | undefined;
  /** How long a call with one answer may take when it names no time. Default 30,000. */
  readonly unaryTimeoutMs?: number | undefined;
  /** Options of grpc-js for the channel; they win over the ones that are set here. */
  readonly channel?: ChannelOptions | undefined;
}

const UNARY_TIMEOUT_MS = 30_000;
/** A page of 500 sessions, or one record of 4 MiB, fits. */
const RECEIVE_BYTES_MAX = 16 * 1024 * 1024;

/** A transport to one server. It connects with the first call and again whenever the connection was lost. */
export function createNodeTransport(options: NodeTransportOptions): Transport {
  const endpoint = endpointOf(options.address);
  return new NodeTransport(new Client(endpoint.target, credentialsOf(endpoint, options.tls), channelOf(endpoint, options)), options);
}

class NodeTransport implements Transport {
  readonly ports = { clock: systemClock, random: cryptoRandom };
  readonly #client: Client;
  readonly #options: NodeTransportOptions;
  #isClosed = false;

  constructor(client: Client, options: NodeTransportOptions) {
    this.#client = client;
    this.#options = options;
  }

  async unary<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    { signal, timeoutMs = this.#options.unaryTimeoutMs ?? UNARY_TIMEOUT_MS }: CallOptions = {},
  ): Promise<MessageShape<Output>> {
    signal?.throwIfAborted();
    const { path, requestSerialize, responseDeserialize } = clientMethod(method);
    return new Promise((resolve, reject) => {
      const call = this.#open().makeUnaryRequest<Encodable<Input>, MessageShape<Output>>(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        this.#metadata(),
        deadlineIn(timeoutMs),
        (error, response) => {
          signal?.removeEventListener("abort", onAbort);
          if (error !== null) reject(signal?.aborted === true ? signal.reason : errorOfStatus(error));
          else if (response === undefined) reject(errorOfStatus(undefined));
          else resolve(response);
        },
      );
      const onAbort = (): void => call.cancel();
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  async upload<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    requests: AsyncIterable<MessageShape<Input>>,
    { signal, timeoutMs }: CallOptions = {},
  ): Promise<MessageShape<Output>> {
    signal?.throwIfAborted();
    const { path, requestSerialize, responseDeserialize } = clientMethod(method);
    const answer = Promise.withResolvers<MessageShape<Output>>();
    const call = this.#open().makeClientStreamRequest<Encodable<Input>, MessageShape<Output>>(
      path,
      requestSerialize,
      responseDeserialize,
      this.#metadata(),
      deadlineIn(timeoutMs),
      (error, response) => {
        if (error !== null || response === undefined) answer.reject(errorOfStatus(error ?? undefined));
        else answer.resolve(response);
      },
    );
    const onAbort = (): void => call.cancel();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      return await answered(call, requests, answer.promise);
    } catch (error) {
      throw signal?.aborted === true ? signal.reason : error;
    } finally {
      signal?.removeEventListener("abort", onAbort);
      call.cancel();
    }
  }

  stream<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageShape<Input>,
    options: CallOptions = {},
  ): AsyncGenerator<MessageShape<Output>, void, undefined> {
    return this.#read<Input, MessageShape<Output>>(clientMethod(method), request, options);
  }

  streamBytes<Input extends DescMessage>(
    method: Method<Input, DescMessage>,
    request: MessageShape<Input>,
    options: CallOptions = {},
  ): AsyncGenerator<Uint8Array, void, undefined> {
    return this.#read<Input, Uint8Array>(rawClientMethod(method), request, options);
  }

  duplex<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    { signal, timeoutMs, metadata = {} }: DuplexOptions = {},
  ): Duplex<MessageShape<Input>, MessageShape<Output>> {
    signal?.throwIfAborted();
    const { path, requestSerialize, responseDeserialize } = clientMethod(method);
    const sent = this.#metadata();
    for (const [key, value] of Object.entries(metadata)) sent.set(key, value);
    const call = this.#open().makeBidiStreamRequest<MessageShape<Input>, MessageShape<Output>>(
      path,
      requestSerialize,
      responseDeserialize,
      sent,
      deadlineIn(timeoutMs),
    );
    return new DuplexCall(call, signal);
  }

  async *#read<Input extends DescMessage, Item>(
    { path, requestSerialize, responseDeserialize }: ClientMethodDefinition<Encodable<Input>, Item>,
    request: MessageShape<Input>,
    { signal, timeoutMs }: CallOptions,
  ): AsyncGenerator<Item, void, undefined> {
    signal?.throwIfAborted();
    const call = this.#open().makeServerStreamRequest<Encodable<Input>, Item>(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      this.#metadata(),
      deadlineIn(timeoutMs),
    );
    // The iterator reports errors; one that comes after its consumer left has nobody to hear it.
    call.on("error", () => undefined);
    const onAbort = (): void => call.cancel();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      for await (const item of call as AsyncIterable<Item>) {
        signal?.throwIfAborted();
        yield item;
      }
      signal?.throwIfAborted();
    } catch (error) {
      throw signal?.aborted === true ? signal.reason : errorOfStatus(error);
    } finally {
      signal?.removeEventListener("abort", onAbort);
      call.cancel();
    }
  }

  /** The channel. Throws FAILED_PRECONDITION once the transport was closed. */
  #open(): Client {
    if (this.#isClosed) throw new HoldfastError("failed_precondition", "client: it was closed; make another one");
    return this.#client;
  }

  #metadata(): Metadata {
    const metadata = new Metadata();
    const { token } = this.#options;
    if (token !== undefined) metadata.set("authorization", `Bearer ${typeof token === "string" ? token : token()}`);
    return metadata;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#client.close();
  }
}

function deadlineIn(timeoutMs: number | undefined): ChannelCallOptions {
  return timeoutMs === undefined ? {} : { deadline: systemClock.nowMs() + timeoutMs };
}

function credentialsOf(endpoint: Endpoint, tls: TlsOptions | undefined): ChannelCredentials {
  if (!endpoint.secure) {
    if (tls !== undefined) throw invalidArgument("tls", "is for https:// addresses");
    return credentials.createInsecure();
  }
  return credentials.createSsl(pem(tls?.ca) ?? trustedByNode(), pem(tls?.key), pem(tls?.cert));
}

/**
 * The roots that this Node trusts, those of NODE_EXTRA_CA_CERTS among them, which grpc-js would pass over. Null leaves it to
 * grpc-js, where Node cannot tell (before 22.15) or grpc-js has a variable of its own for it.
 */
function trustedByNode(): Buffer | null {
  if (process.env["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] !== undefined || process.env["NODE_EXTRA_CA_CERTS"] === undefined) return null;
  if (typeof nodeTls.getCACertificates !== "function") return null;
  return Buffer.from(nodeTls.getCACertificates("default").join("\n"));
}

function pem(text: Uint8Array | string | undefined): Buffer | null {
  if (text === undefined) return null;
  return typeof text === "string" ? Buffer.from(text) : Buffer.from(text.buffer, text.byteOffset, text.byteLength);
}

function channelOf({ local }: Endpoint, { tls, channel }: NodeTransportOptions): ChannelOptions {
  return {
    "grpc.max_receive_message_length": RECEIVE_BYTES_MAX,
    // A connection that went silent is noticed while a stream waits on it.
    "grpc.keepalive_time_ms": 30_000,
    "grpc.keepalive_timeout_ms": 10_000,
    // A server that comes back is found again soon; the streams' own waits are longer.
    "grpc.initial_reconnect_backoff_ms": 50,
    "grpc.max_reconnect_backoff_ms": 1_000,
    "grpc.service_config_disable_resolution": 1,
    ...(local ? { "grpc.enable_http_proxy": 0 } : {}),
    ...(tls?.serverName === undefined ? {} : { "grpc.ssl_target_name_override": tls.serverName }),
    ...channel,
  };
}
