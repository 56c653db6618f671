/**
 * The contract's own Connect at the harness's end: one call, presented to the machine as a line with one exchange.
 *
 * Invariants:
 * - The stream of events ends OK after END or PARKED, and with a status where the run gave up. A run that was cancelled says END CANCELED.
 * - What the contract has no frame for comes with the call's metadata, or is asked of the host's own service where the metadata names it.
 */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Metadata, ServerDuplexStream } from "@grpc/grpc-js";
import { codeOfGrpcStatus, HoldfastError } from "../../base/errors.ts";
import { EventKind, EventSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ControllerFrameSchema, type ControllerFrame } from "../../gen/agentsessions/v1/harness_pb.ts";
import { HarnessFrameSchema, HostFrameSchema, type ExchangeEnd, type HostFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { statusOf } from "../../grpc/index.ts";
import type { Harness } from "../../spi/harness.ts";
import { HarnessEnd, LINE_PROTOCOL, type HarnessEndOptions, type HarnessFrameInit } from "../index.ts";
import { HostClient } from "./host-client.ts";
import { CREDENTIAL_KEY, HOST_KEY, LAST_SEQ_KEY, MODEL_KEY, textOf } from "./metadata.ts";
import { Outlet } from "./outlet.ts";

/** The one exchange of a call. */
const EXCHANGE = 1;

/** A call of Connect. */
export class ConnectBridge {
  readonly end: HarnessEnd;
  readonly #call: ServerDuplexStream<Uint8Array, Uint8Array>;
  readonly #outlet: Outlet;
  readonly #host: HostClient | undefined;
  #executionId = "";
  #isOpen = false;
  #isCancelled = false;
  #isOver = false;

  constructor(call: ServerDuplexStream<Uint8Array, Uint8Array>, harness: Harness, options: HarnessEndOptions) {
    this.#call = call;
    this.#outlet = new Outlet(call);
    this.#host = hostOf(call.metadata, {
      history: (page) => this.#give({ case: "history", value: page }),
      token: (token) => this.#give({ case: "token", value: token }),
    });
    this.end = new HarnessEnd(harness, { send: (frame) => this.#send(frame) }, options);
    call.on("data", (bytes: Uint8Array) => this.#receive(bytes));
    call.on("cancelled", () => this.close());
    call.on("error", () => this.close());
    call.on("end", () => this.#hostLeft());
  }

  /** The call is over; what runs is told to stop. */
  close(): void {
    this.#isOver = true;
    this.end.close();
    this.#host?.[Symbol.dispose]();
  }

  #receive(bytes: Uint8Array): void {
    if (this.#isOver) return;
    try {
      const frame = fromBinary(ControllerFrameSchema, bytes);
      if (!this.#isOpen) this.#open(frame);
      if (frame.frame.case === "cancel") this.#isCancelled = true;
      this.#give({ case: "controller", value: frame });
    } catch (error) {
      this.#fail(
        error instanceof HoldfastError
          ? error
          : new HoldfastError("invalid_argument", "frame: must be a ControllerFrame", { cause: error }),
      );
    }
  }

  #open({ executionId, frame }: ControllerFrame): void {
    if (frame.case !== "start") throw new HoldfastError("invalid_argument", "frame: the first one must be the start");
    this.#isOpen = true;
    this.#executionId = executionId;
    const pushed = frame.value.history.length;
    const lastSeq = pushed > 0 ? BigInt(pushed) : lastSeqOf(this.#call.metadata);
    const historyPulled = this.#host !== undefined && pushed === 0 && lastSeq > 0n;
    const model = textOf(this.#call.metadata, MODEL_KEY) ?? "";
    this.end.receive(create(HostFrameSchema, { frame: { case: "hello", value: { protocol: LINE_PROTOCOL } } }));
    this.#give({
      case: "open",
      value: {
        $typeName: "holdfast.v1.ExecutionOpening",
        model,
        historyLastSeq: historyPulled ? lastSeq : BigInt(pushed),
        historyPulled,
        replayed: false,
        // The contract has no place for them.
        tools: [],
      },
    });
  }

  #give(frame: HostFrame["frame"]): void {
    this.end.receive({ $typeName: "holdfast.v1.HostFrame", exchange: EXCHANGE, frame });
  }

  #send(init: HarnessFrameInit): Promise<void> {
    const { frame } = create(HarnessFrameSchema, init);
    switch (frame.case) {
      case "event":
        return this.#outlet.put(toBinary(EventSchema, frame.value));
      case "end":
        this.#ended(frame.value);
        break;
      case "readHistory":
        this.#host?.read(frame.value);
        break;
      case "mintToken":
        if (this.#host === undefined)
          throw new HoldfastError("unimplemented", "identity: this host mints no tokens for a harness elsewhere");
        this.#host.mint(frame.value);
        break;
      default:
        break;
    }
    return Promise.resolve();
  }

  #ended(end: ExchangeEnd): void {
    if (this.#isOver) return;
    if (end.code !== 0 && this.#isCancelled) {
      const body = { case: "end", value: { state: "CANCELED" } } as const;
      const event = create(EventSchema, { executionId: this.#executionId, schemaVersion: 1, kind: EventKind.EVENT_END, body });
      this.#outlet.put(toBinary(EventSchema, event)).catch(() => undefined);
    } else if (end.code !== 0) {
      const code = codeOfGrpcStatus(end.code);
      const status = code === undefined ? { code: end.code, details: end.description } : statusOf(new HoldfastError(code, end.description));
      this.#isOver = true;
      this.#host?.[Symbol.dispose]();
      return void this.#call.emit("error", status);
    }
    this.#isOver = true;
    this.#host?.[Symbol.dispose]();
    this.#outlet.end();
  }

  #fail(error: HoldfastError): void {
    this.close();
    this.#call.emit("error", statusOf(error));
  }

  /** A host that half-closes has nothing more to say; one that did so before a run's end is gone. */
  #hostLeft(): void {
    if (this.#isOver) return;
    if (!this.#isCancelled) this.#fail(new HoldfastError("unavailable", "host: it closed the call"));
  }
}

function hostOf(metadata: Metadata, answers: ConstructorParameters<typeof HostClient>[2]): HostClient | undefined {
  const address = textOf(metadata, HOST_KEY);
  const credential = textOf(metadata, CREDENTIAL_KEY);
  return address === undefined || credential === undefined ? undefined : new HostClient(address, credential, answers);
}

function lastSeqOf(metadata: Metadata): bigint {
  const text = textOf(metadata, LAST_SEQ_KEY) ?? "0";
  if (!/^[0-9]{1,16}$/.test(text)) throw new HoldfastError("invalid_argument", `${LAST_SEQ_KEY}: must be a whole number`);
  return BigInt(text);
}
