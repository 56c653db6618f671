/**
 * A harness that serves the contract and nothing else, as a line: each execution is a call of Connect.
 *
 * Invariants:
 * - What the contract has no frame for goes another way, or not at all. A refused effect is a Cancel with the reason INTERNAL; the model
 *   and the length of the history are metadata; history and tokens are pulled from the host's own service, with a credential.
 * - An event without an execution id gets its call's: the contract leaves the field to the host. Another's id is the harness's own fault.
 * - A stream that ends with a status ends its exchange with that status; it never ends the line, whose next call may reach the peer again.
 */

import { create, fromBinary } from "@bufbuild/protobuf";
import { status as GrpcStatus, type Client, type ClientDuplexStream } from "@grpc/grpc-js";
import { HoldfastError } from "../../base/errors.ts";
import { EventSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { Harness, type HarnessDescriptor } from "../../gen/agentsessions/v1/harness_pb.ts";
import { HarnessFrameSchema, type HarnessFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { asBuffer, CODE_KEY, errorOfStatus, isServiceError, pathOf } from "../../grpc/index.ts";
import {
  encodeControllerFrame,
  LINE_PROTOCOL,
  type FrameExtras,
  type HarnessFrameInit,
  type HostFrameInit,
  type HostLine,
} from "../index.ts";
import { MessageQueue } from "./message-queue.ts";
import { CREDENTIAL_KEY, HOST_KEY, LAST_SEQ_KEY, metadataOf, MODEL_KEY, textOf } from "./metadata.ts";
import { Outlet } from "./outlet.ts";

type HostBody = NonNullable<HostFrameInit["frame"]>;
type BodyOf<Case extends string> = Extract<HostBody, { case: Case }>["value"];
type Call = ClientDuplexStream<Uint8Array, Uint8Array>;

/** What is known of a peer that speaks the contract. */
export interface ContractPeer {
  readonly client: Client;
  /** Asks for the descriptor. */
  readonly describe: () => Promise<HarnessDescriptor>;
  /** Whether it pulls histories where it is told the host's address. */
  readonly pulls: boolean;
  /** Metadata that every call must carry. */
  readonly callMetadata: Readonly<Record<string, string>>;
  readonly frameBytesMax: number;
}

/** A line whose executions are calls of Connect. */
export function contractHostLine(peer: ContractPeer): HostLine {
  return new ContractLine(peer);
}

/** How long a harness that was told to stop may take before its call is cancelled. */
const STOP_GRACE_MS = 5_000;

interface OpenCall {
  readonly call: Call;
  readonly outlet: Outlet;
  session: string;
  executionId: string;
}

class ContractLine implements HostLine {
  readonly takesEncodedEvents = true;
  readonly frames = new MessageQueue<HarnessFrame>();
  readonly #peer: ContractPeer;
  readonly #calls = new Map<number, OpenCall>();

  constructor(peer: ContractPeer) {
    this.#peer = peer;
  }

  send(frame: HostFrameInit, extras: FrameExtras = {}): Promise<void> {
    const { exchange = 0, frame: body } = frame;
    switch (body?.case) {
      case "hello":
        return this.#tell(exchange, { case: "hello", value: this.#hello() });
      case "describe":
        void this.#describe(exchange);
        break;
      case "open":
        this.#open(exchange, body.value, extras);
        break;
      case "controller":
        return this.#control(exchange, body.value, extras);
      case "refused":
        return this.#refuse(exchange, body.value);
      case "end":
        this.#calls.get(exchange)?.call.cancel();
        this.#calls.delete(exchange);
        break;
      default:
        break;
    }
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.frames.end();
    for (const { call } of this.#calls.values()) call.cancel();
    this.#calls.clear();
    this.#peer.client.close();
  }

  #hello(): Extract<NonNullable<HarnessFrameInit["frame"]>, { case: "hello" }>["value"] {
    return { protocol: LINE_PROTOCOL, pullsHistory: this.#peer.pulls, frameBytesMax: this.#peer.frameBytesMax };
  }

  async #describe(exchange: number): Promise<void> {
    try {
      await this.#tell(exchange, { case: "descriptor", value: await this.#peer.describe() });
    } catch (error) {
      await this.#tell(exchange, { case: "end", value: endOf(error) });
    }
  }

  #open(exchange: number, opening: BodyOf<"open">, { grant }: FrameExtras): void {
    const metadata = metadataOf({
      ...this.#peer.callMetadata,
      [MODEL_KEY]: headerText(opening.model),
      [LAST_SEQ_KEY]: String(opening.historyLastSeq ?? 0n),
      [HOST_KEY]: grant?.address,
      [CREDENTIAL_KEY]: grant?.credential,
    });
    const path = pathOf(Harness.method.connect);
    const call = this.#peer.client.makeBidiStreamRequest<Uint8Array, Uint8Array>(path, asBuffer, (bytes) => bytes, metadata, {});
    const open: OpenCall = { call, outlet: new Outlet(call), session: "", executionId: "" };
    this.#calls.set(exchange, open);
    void this.#read(exchange, open);
  }

  /** Passes events on; each waits until the host has room. */
  async #read(exchange: number, open: OpenCall): Promise<void> {
    try {
      for await (const bytes of open.call as AsyncIterable<Uint8Array>) {
        if (this.#calls.get(exchange) !== open) continue;
        const event = eventOf(bytes);
        event.executionId ||= open.executionId;
        await this.#tell(exchange, { case: "event", value: event });
      }
      if (this.#calls.get(exchange) === open) await this.#tell(exchange, { case: "end", value: { code: 0 } });
    } catch (error) {
      if (this.#calls.get(exchange) === open)
        await this.#tell(exchange, isBroken(error) ? BROKEN_EVENT : { case: "end", value: endOf(error) });
    } finally {
      open.call.cancel();
      if (this.#calls.get(exchange) === open) this.#calls.delete(exchange);
    }
  }

  #control(exchange: number, frame: BodyOf<"controller">, { events }: FrameExtras): Promise<void> {
    const open = this.#calls.get(exchange);
    if (open === undefined) return Promise.resolve();
    open.session = frame.session ?? "";
    open.executionId = frame.executionId ?? "";
    return open.outlet.put(encodeControllerFrame(frame, events));
  }

  /** The contract has no word for an effect that was refused: the harness is told to stop, and is not listened to any more. */
  #refuse(exchange: number, { error }: BodyOf<"refused">): Promise<void> {
    const open = this.#calls.get(exchange);
    if (open === undefined) return Promise.resolve();
    this.#calls.delete(exchange);
    const { session, executionId, outlet, call } = open;
    const cancel = encodeControllerFrame({ session, executionId, frame: { case: "cancel", value: { reason: "INTERNAL" } } });
    outlet.put(cancel).catch(() => undefined);
    outlet.end();
    setTimeout(() => call.cancel(), STOP_GRACE_MS).unref();
    return this.#tell(exchange, { case: "end", value: { code: error?.code ?? 13, description: error?.description ?? "" } });
  }

  #tell(exchange: number, frame: NonNullable<HarnessFrameInit["frame"]>): Promise<void> {
    return this.frames.push(create(HarnessFrameSchema, { exchange, frame }));
  }
}

class BrokenEvent extends Error {}

/** What no harness may send within an execution: it fails that execution, and not the line. */
const BROKEN_EVENT: NonNullable<HarnessFrameInit["frame"]> = { case: "hello", value: {} };

function eventOf(bytes: Uint8Array): ReturnType<typeof fromBinary<typeof EventSchema>> {
  try {
    return fromBinary(EventSchema, bytes);
  } catch (error) {
    throw new BrokenEvent("no event", { cause: error });
  }
}

/** Whether the harness sent what no host takes: bytes that are no event, or more than a message may have. */
function isBroken(error: unknown): boolean {
  if (error instanceof BrokenEvent) return true;
  return isServiceError(error) && error.code === GrpcStatus.RESOURCE_EXHAUSTED && textOf(error.metadata, CODE_KEY) === undefined;
}

/** How a call that ended with a status ends its exchange. UNKNOWN is what a harness that threw ends with; its words go to the log. */
function endOf(error: unknown): { readonly code: number; readonly description: string } {
  if (isServiceError(error) && error.code === GrpcStatus.UNKNOWN) return { code: error.code, description: error.details };
  const fault = error instanceof HoldfastError ? error : errorOfStatus(error);
  if (fault.code === "unavailable" && !isSaidByPeer(error)) {
    return { code: GrpcStatus.UNAVAILABLE, description: "harness: the call to it was lost; its turn is interrupted and can be resumed" };
  }
  return { code: fault.facts.grpc, description: fault.message };
}

function isSaidByPeer(error: unknown): boolean {
  return isServiceError(error) && textOf(error.metadata, CODE_KEY) !== undefined;
}

/** A text that a header can hold; undefined for any other. */
function headerText(text: string | undefined): string | undefined {
  return text !== undefined && /^[\x21-\x7e]{1,1024}$/.test(text) ? text : undefined;
}
