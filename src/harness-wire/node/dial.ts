/** Dials a harness that is served over gRPC: by the harness wire where it says so, by the contract's own Connect otherwise. */

import { connect } from "node:net";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ChannelCredentials, type ChannelOptions } from "@grpc/grpc-js";
import { HoldfastError } from "../../base/errors.ts";
import { DescribeRequestSchema, Harness, type HarnessDescriptor } from "../../gen/agentsessions/v1/harness_pb.ts";
import { clientMethod, errorOfStatus } from "../../grpc/index.ts";
import { LINE_PROTOCOL, noAnswer, WIRE_LIMITS, type HostLine } from "../index.ts";
import { grpcTargetOf, harnessAddressOf, isLoopback, type HarnessAddress } from "./address.ts";
import { clientChannel } from "./channel.ts";
import { contractHostLine } from "./contract-line.ts";
import { grpcHostLine } from "./grpc-line.ts";
import { HISTORY_KEY, LINE_KEY, metadataOf, textOf, WIRE_KEY } from "./metadata.ts";
import { tuneSocket } from "./shared-listener.ts";
import { hostLineOver } from "./stream-line.ts";

/** How a harness is dialled. */
export interface DialOptions {
  /** Metadata that every call must carry; routing, not authentication. */
  readonly callMetadata?: Readonly<Record<string, string>> | undefined;
  /** Whether a harness that speaks the contract alone may pull its histories: the host has a HarnessHost to pull from. Default false. */
  readonly offersHost?: boolean | undefined;
  /** False never asks for the harness wire: the contract's own calls are made. Default true. */
  readonly wire?: boolean | undefined;
  /** False opens a line within gRPC also where the harness takes one on a connection of its own, which costs less. Default true. */
  readonly stream?: boolean | undefined;
  readonly frameBytesMax?: number | undefined;
  /** How each end knows the other. Default: cleartext. */
  readonly credentials?: ChannelCredentials | undefined;
  /** The name in the harness's certificate, where it is not the address's host. */
  readonly serverName?: string | undefined;
  /** How long the harness may take to answer. Default 10,000. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a harness said when it was dialled. */
export interface DialledHarness {
  readonly line: HostLine;
  /** `wire` for the harness wire, `contract` for the contract's own calls. */
  readonly speaks: "wire" | "contract";
  readonly descriptor: HarnessDescriptor;
}

/** What a peer that speaks the contract alone takes: grpc's own default. */
const CONTRACT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Dials `address` (`unix:///path` or `host:port`). Rejects with UNAVAILABLE where nobody answers, and with what the harness
 * answered where it does not describe itself.
 */
export async function dialHarness(address: string, options: DialOptions = {}): Promise<DialledHarness> {
  const parsed = harnessAddressOf(address);
  const frameBytesMax = options.frameBytesMax ?? WIRE_LIMITS.frameBytesMax;
  const channel: ChannelOptions = {
    ...clientChannel(frameBytesMax, { local: isLoopback(parsed) }),
    ...(options.serverName === undefined ? {} : { "grpc.ssl_target_name_override": options.serverName }),
  };
  const client = new Client(grpcTargetOf(parsed), options.credentials ?? credentials.createInsecure(), channel);
  const { callMetadata = {}, timeoutMs = 10_000, signal } = options;
  try {
    const describe = (ms: number): Promise<Described> => describeOver(client, { callMetadata, timeoutMs: ms, signal });
    const { descriptor, answer } = await describe(timeoutMs);
    if (options.wire !== false && textOf(answer, WIRE_KEY) === String(LINE_PROTOCOL)) {
      // A stream of frames has neither metadata nor TLS.
      const isPlain = options.credentials === undefined && Object.keys(callMetadata).length === 0;
      const isDirect = isPlain && textOf(answer, LINE_KEY) === "stream" && options.stream !== false;
      if (!isDirect) return { line: grpcHostLine(client, metadataOf(callMetadata)), speaks: "wire", descriptor };
      client.close();
      return { line: await streamHostLine(parsed, { frameBytesMax, timeoutMs }), speaks: "wire", descriptor };
    }
    const pulls = options.offersHost === true && textOf(answer, HISTORY_KEY) === "pull";
    const isOurs = textOf(answer, WIRE_KEY) !== undefined;
    const line = contractHostLine({
      client,
      describe: async () => (await describeOver(client, { callMetadata, timeoutMs, signal: undefined })).descriptor,
      pulls,
      callMetadata,
      frameBytesMax: isOurs ? frameBytesMax * 2 : CONTRACT_BYTES_MAX,
    });
    return { line, speaks: "contract", descriptor };
  } catch (error) {
    client.close();
    throw error;
  }
}

/** A line as frames on a connection of its own. */
function streamHostLine(
  address: HarnessAddress,
  { frameBytesMax, timeoutMs }: { readonly frameBytesMax: number; readonly timeoutMs: number },
): Promise<HostLine> {
  const socket =
    address.kind === "unix" ? connect(address.path) : connect({ host: address.host.replaceAll(/[[\]]/g, ""), port: address.port });
  return new Promise((resolve, reject) => {
    const fail = (cause?: unknown): void => {
      socket.destroy();
      reject(new HoldfastError("unavailable", "harness: nobody answers at its address", { cause }));
    };
    const timer = setTimeout(fail, timeoutMs);
    socket.once("error", fail);
    socket.once("close", () => clearTimeout(timer));
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.off("error", fail);
      tuneSocket(socket);
      resolve(hostLineOver({ readable: socket, writable: socket }, { frameBytesMax }));
    });
  });
}

interface Described {
  readonly descriptor: HarnessDescriptor;
  readonly answer: Metadata;
}

interface DescribeOptions {
  readonly callMetadata: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

function describeOver(client: Client, { callMetadata, timeoutMs, signal }: DescribeOptions): Promise<Described> {
  signal?.throwIfAborted();
  const { path, requestSerialize, responseDeserialize } = clientMethod(Harness.method.describe);
  return new Promise((resolve, reject) => {
    let answer = new Metadata();
    let isLate = false;
    const call = client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      create(DescribeRequestSchema),
      metadataOf(callMetadata),
      (error, descriptor) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        if (descriptor !== undefined) resolve({ descriptor, answer });
        else if (signal?.aborted === true) reject(signal.reason);
        else reject(isLate ? noAnswer("describe", timeoutMs) : undialled(error));
      },
    );
    call.on("metadata", (metadata) => (answer = metadata));
    const onAbort = (): void => call.cancel();
    signal?.addEventListener("abort", onAbort, { once: true });
    const timer = setTimeout(() => {
      isLate = true;
      call.cancel();
    }, timeoutMs);
  });
}

function undialled(error: unknown): HoldfastError {
  const fault = errorOfStatus(error);
  if (fault.code === "unavailable" || fault.code === "deadline_exceeded") {
    return new HoldfastError("unavailable", "harness: nobody answers at its address", { cause: error });
  }
  return new HoldfastError(fault.code, `harness: it did not describe itself (${fault.message})`, { cause: error });
}
