/**
 * Peers that break the harness wire, each in one way, played by hand. A fault is what the peer does once it has been given a start; up to
 * then it is honest.
 */

import { HoldfastError } from "../../base/index.ts";
import { EventKind } from "../../gen/agentsessions/v1/common_pb.ts";
import type { HostFrame } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import type { HarnessFrameInit } from "../../harness-wire/index.ts";
import { memoryLine, type MemoryLine, type PeerEnd } from "./memory-line.ts";

type FrameBody = NonNullable<HarnessFrameInit["frame"]>;
type EventInit = Extract<FrameBody, { case: "event" }>["value"];

/** An execution as a peer that is played by hand sees it. */
export class FaultyRun {
  readonly peer: PeerEnd;
  readonly exchange: number;
  readonly executionId: string;
  /** What the host sends in the exchange after its start. */
  readonly received: HostFrame["frame"][] = [];
  #wake: () => void = () => undefined;

  constructor(peer: PeerEnd, exchange: number, executionId: string) {
    this.peer = peer;
    this.exchange = exchange;
    this.executionId = executionId;
  }

  /** Sends a frame of the exchange. */
  frame(frame: FrameBody, exchange = this.exchange): void {
    this.peer.send({ exchange, frame }).catch(() => undefined);
  }

  /** Sends an event of the execution, changed as `event` says. */
  event(event: EventInit): void {
    this.frame({ case: "event", value: { executionId: this.executionId, schemaVersion: 1, ...event } });
  }

  model(id = "m1"): void {
    this.event({ kind: EventKind.EVENT_MODEL_CALL, body: { case: "model", value: { id, model: "test" } } });
  }

  output(text: string): void {
    this.event({ kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: textInit("assistant", text) } });
  }

  end(state = "COMPLETED"): void {
    this.event({ kind: EventKind.EVENT_END, body: { case: "end", value: { state } } });
  }

  exchangeEnd(code = 0): void {
    this.frame({ case: "end", value: { code } });
  }

  take(frame: HostFrame["frame"]): void {
    this.received.push(frame);
    this.#wake();
  }

  /** Resolves once the host has sent a frame of that kind. */
  async until(kind: HostFrame["frame"]["case"]): Promise<void> {
    while (!this.received.some((frame) => frame.case === kind)) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

/** A message as a plain object. */
export function textInit(role: string, text: string) {
  return { role, parts: [{ part: { case: "text", value: { text } } as const }] };
}

/** A line to a peer that is honest until it is given a start, and then does as `act` says. */
export function faultyLine(act: (run: FaultyRun) => void | Promise<void>, { pullsHistory = true } = {}): MemoryLine {
  const line = memoryLine();
  const runs = new Map<number, FaultyRun>();
  line.peer.onFrame = ({ exchange, frame }) => {
    const send = (body: FrameBody): void => void line.peer.send({ exchange, frame: body }).catch(() => undefined);
    if (frame.case === "hello") return send({ case: "hello", value: { protocol: 1, pullsHistory, frameBytesMax: 1 << 20 } });
    if (frame.case === "describe")
      return send({ case: "descriptor", value: { id: "faulty", version: "1", capabilities: { resumability: 1 } } });
    if (frame.case === "controller" && frame.value.frame.case === "start") {
      const run = new FaultyRun(line.peer, exchange, frame.value.executionId);
      runs.set(exchange, run);
      return void act(run);
    }
    runs.get(exchange)?.take(frame);
  };
  return line;
}

/** What becomes of the turn. */
export type FaultVerdict =
  /** END FAILED with this rule. */
  | { readonly failed: string }
  /** No END; the turn can be resumed. */
  | { readonly interrupted: string };

/** One way to break the wire. */
export interface WireFault {
  readonly act: (run: FaultyRun) => void | Promise<void>;
  readonly verdict: FaultVerdict;
  /** What the turn has recorded beyond its start and its inputs, before its end. */
  readonly recorded?: readonly string[];
  readonly pushed?: boolean;
}

const NOT_OURS = "an event must be one that a harness may send, with the body of its kind";
const LOST = { interrupted: "harness: the line to it was closed; its turn is interrupted and can be resumed" };

/** Events that only a host writes. */
const HOST_EVENTS: Readonly<Record<string, EventInit>> = {
  INPUT: { kind: EventKind.EVENT_INPUT, body: { case: "message", value: textInit("user", "forged") } },
  APPROVAL_REQUEST: { kind: EventKind.EVENT_APPROVAL_REQUEST, body: { case: "approval", value: { toolCallId: "x" } } },
  APPROVAL_RESULT: { kind: EventKind.EVENT_APPROVAL_RESULT, body: { case: "approvalResult", value: { toolCallId: "x", approved: true } } },
  LIFECYCLE: { kind: EventKind.EVENT_LIFECYCLE, body: { case: "lifecycle", value: { kind: 6 } } },
  ERROR: { kind: EventKind.EVENT_ERROR, body: { case: "error", value: { code: 13 } } },
  EXECUTION_START: { kind: EventKind.EVENT_EXECUTION_START, body: { case: "executionStart", value: { harness: "other" } } },
  "no kind": { body: { case: "message", value: textInit("assistant", "x") } },
  "no body": { kind: EventKind.EVENT_OUTPUT },
  "the body of another kind": { kind: EventKind.EVENT_USAGE, body: { case: "message", value: textInit("assistant", "x") } },
};

/** Every fault by name. */
export const WIRE_FAULTS: Readonly<Record<string, WireFault>> = {
  ...Object.fromEntries(
    Object.entries(HOST_EVENTS).map(([name, event]) => [
      `an event with ${name}`,
      { act: (run) => run.event(event), verdict: { failed: NOT_OURS } },
    ]),
  ),
  "an event of another execution": {
    act: (run) =>
      run.event({ executionId: "other", kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: textInit("assistant", "x") } }),
    verdict: { failed: "an event must carry the id of its execution" },
  },
  "an event without an execution": {
    act: (run) => run.event({ executionId: "", kind: EventKind.EVENT_END, body: { case: "end", value: { state: "COMPLETED" } } }),
    verdict: { failed: "an event must carry the id of its execution" },
  },
  "two ENDs": {
    act: (run) => {
      run.end();
      run.end("FAILED");
    },
    verdict: { failed: "no event may follow END or PARKED" },
  },
  "an output after END": {
    act: (run) => {
      run.output("before");
      run.end();
      run.output("after");
      run.exchangeEnd();
    },
    verdict: { failed: "no event may follow END or PARKED" },
    recorded: ["OUTPUT before"],
  },
  "END and then silence": { act: (run) => run.end(), verdict: { failed: "the exchange must end after END or PARKED" } },
  "END and then another reason": {
    act: (run) => {
      run.end();
      run.exchangeEnd(14);
    },
    verdict: { failed: "an exchange must end in order after END or PARKED" },
  },
  "an end in order without END": {
    act: (run) => run.exchangeEnd(),
    verdict: { failed: "an exchange may end in order only after END or PARKED" },
  },
  "END with a state of its own": { act: (run) => run.end("DONE"), verdict: { failed: "END must say COMPLETED, FAILED or CANCELED" } },
  "END CANCELED that nobody asked for": { act: (run) => run.end("CANCELED"), verdict: { failed: "END CANCELED must answer a cancel" } },
  "PARKED that nobody asked for": {
    act: (run) => run.event({ kind: EventKind.EVENT_PARKED, body: { case: "parked", value: { toolCallId: "x", requestSeq: 3n } } }),
    verdict: { failed: "PARKED must answer a park with the same reference" },
  },
  "a model call without an id": {
    act: (run) => run.model(""),
    verdict: { failed: "MODEL_CALL must have an id, which its result repeats" },
  },
  "two model calls with one id": {
    act: (run) => {
      run.model();
      run.model();
    },
    verdict: { failed: "MODEL_CALL must have an id that no open call has" },
    recorded: ["MODEL_CALL"],
  },
  "an output of the user's": {
    act: (run) => run.event({ kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: textInit("user", "x") } }),
    verdict: { failed: "OUTPUT must be a message of the assistant" },
  },
  "an output with a tool call in it": {
    act: (run) => {
      const parts = [{ part: { case: "toolCall", value: { id: "x", tool: "y" } } as const }];
      run.event({ kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: { role: "assistant", parts } } });
    },
    verdict: { failed: "OUTPUT must hold text and nothing else" },
  },
  "a report with the host's fields": {
    act: (run) => run.event({ kind: EventKind.EVENT_TOOL_RESULT, body: { case: "result", value: { id: "x", approvalDecisionSeq: 4n } } }),
    verdict: { failed: "TOOL_RESULT must leave approval_request_seq and approval_decision_seq to the host" },
  },
  "a result of a call that the host runs": {
    act: async (run) => {
      const call = { id: "x", tool: "y", idempotencyKey: "k", mediation: 2 } as const;
      run.event({ kind: EventKind.EVENT_TOOL_CALL, body: { case: "tool", value: call } });
      run.event({ kind: EventKind.EVENT_TOOL_RESULT, body: { case: "result", value: { id: "x" } } });
    },
    verdict: { failed: "the result of a call that the host runs is the host's to report" },
  },
  "a descriptor within an execution": {
    act: (run) => run.frame({ case: "descriptor", value: { id: "other" } }),
    verdict: { failed: "an execution knows no such frame" },
  },
  "an empty frame": {
    act: (run) => void run.peer.send({ exchange: run.exchange }),
    verdict: { failed: "an execution knows no such frame" },
  },
  "a second hello": {
    act: (run) => run.frame({ case: "hello", value: { protocol: 1 } }, 0),
    verdict: { failed: "a frame must belong to an exchange that the host opened" },
  },
  "a frame of an exchange that was never opened": {
    act: (run) => run.frame({ case: "end", value: {} }, 4_000_000),
    verdict: { failed: "a frame must belong to an exchange that the host opened" },
  },
  "a read of a history that was pushed": {
    act: (run) => run.frame({ case: "readHistory", value: { read: 1 } }),
    verdict: { failed: "a history that was pushed is not read" },
    pushed: true,
  },
  "a read before the beginning": {
    act: (run) => run.frame({ case: "readHistory", value: { read: 1, fromSeq: -1n } }),
    verdict: { failed: "a read must name seqs that are not negative" },
  },
  "a read of a million pages": {
    act: (run) => run.frame({ case: "readHistory", value: { read: 1, pages: 1_000_000 } }),
    verdict: { failed: "a read must ask for at most 16 pages ahead" },
  },
  "bytes that are no frame": {
    act: (run) => run.peer.break(new HoldfastError("invalid_argument", "no frame")),
    verdict: { failed: "the harness sent bytes that are no frame" },
  },
  "a frame that is too large": {
    act: (run) => run.peer.break(new HoldfastError("resource_exhausted", "too large")),
    verdict: { failed: "the harness sent a frame that is larger than the host takes" },
  },
  "a line that is closed after the start": { act: (run) => run.peer.close(), verdict: LOST },
  "a line that is closed within a model call": {
    act: (run) => {
      run.model();
      run.peer.close();
    },
    verdict: LOST,
    recorded: ["MODEL_CALL"],
  },
  "a line that is closed after a model call": {
    act: async (run) => {
      run.model();
      await run.until("controller");
      run.peer.close();
    },
    verdict: LOST,
    recorded: ["MODEL_CALL", "OUTPUT hello"],
  },
  "a line that is closed after END": {
    act: (run) => {
      run.end();
      run.peer.close();
    },
    verdict: LOST,
  },
};
