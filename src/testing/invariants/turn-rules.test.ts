import { describe, expect, it } from "vitest";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { EventKind, EventSchema, Lifecycle_Kind, type Event } from "../../gen/agentsessions/v1/common_pb.ts";
import { TurnRules } from "./turn-rules.ts";

type Init = MessageInitShape<typeof EventSchema>;

const event = (init: Init, executionId = "e1"): Event =>
  create(EventSchema, { executionId, schemaVersion: 1, ts: timestampFromMs(1), ...init });

const start = (inputCount: bigint | undefined, id = "e1"): Event => {
  const value = { harness: "x", ...(inputCount === undefined ? {} : { inputCount }) };
  return event({ kind: EventKind.EVENT_EXECUTION_START, body: { case: "executionStart", value } }, id);
};
const input = (id = "e1"): Event => event({ kind: EventKind.EVENT_INPUT, body: { case: "message", value: {} } }, id);
const output = (id = "e1"): Event => event({ kind: EventKind.EVENT_OUTPUT, body: { case: "message", value: {} } }, id);
const call = (callId: string): Event => event({ kind: EventKind.EVENT_MODEL_CALL, body: { case: "model", value: { id: callId } } });
const usage = (id = "e1"): Event => event({ kind: EventKind.EVENT_USAGE, body: { case: "usage", value: {} } }, id);
const error = (): Event => event({ kind: EventKind.EVENT_ERROR, body: { case: "error", value: {} } });
const end = (state: string, id = "e1"): Event => event({ kind: EventKind.EVENT_END, body: { case: "end", value: { state } } }, id);
const lifecycle = (kind: Lifecycle_Kind, id = ""): Event =>
  event({ kind: EventKind.EVENT_LIFECYCLE, body: { case: "lifecycle", value: { kind } } }, id);

const { LIFECYCLE_CANCEL, LIFECYCLE_DELETE, LIFECYCLE_FORK, LIFECYCLE_RESUME, LIFECYCLE_SUSPEND, LIFECYCLE_BASELINE } = Lifecycle_Kind;
const cancel = lifecycle(LIFECYCLE_CANCEL, "e1");
const [fork, suspend, resume, remove] = [LIFECYCLE_FORK, LIFECYCLE_SUSPEND, LIFECYCLE_RESUME, LIFECYCLE_DELETE].map((kind) =>
  lifecycle(kind),
);

/** What is wrong with each event of a journal, joined. */
function faultsOf(events: readonly Event[]): string[] {
  const rules = new TurnRules();
  return events.flatMap((each) => [...rules.push(each)]);
}

describe("the grammar of turns", () => {
  const RIGHT: Readonly<Record<string, readonly Event[]>> = {
    "a whole turn": [start(1n), input(), call("1"), output(), usage(), end("COMPLETED")],
    "a turn that was interrupted and went on": [start(0n), call("1"), error(), output(), end("COMPLETED")],
    "an abandoned turn": [start(0n), call("1"), start(0n, "e2"), end("COMPLETED", "e2")],
    "a cancelled turn": [start(0n), call("1"), cancel, end("CANCELED")],
    "a turn that is cancelled on a cold session": [start(0n), error(), suspend!, cancel, end("CANCELED"), resume!, start(0n, "e2")],
    "a call whose completion comes after suspend and resume": [start(0n), call("1"), suspend!, resume!, output(), end("COMPLETED")],
    "a fork inside the inputs": [start(2n), input(), fork!, start(0n, "e2"), end("COMPLETED", "e2")],
    "a fork between CANCEL and END": [start(0n), cancel, fork!, start(0n, "e2"), end("COMPLETED", "e2")],
    "a deleted session": [start(0n), end("FAILED"), remove!],
  };
  it.each(Object.entries(RIGHT))("allows %s", (_, events) => {
    expect(faultsOf(events)).toEqual([]);
  });

  const WRONG: Readonly<Record<string, readonly Event[]>> = {
    "a record follows LIFECYCLE DELETE": [remove!, start(0n)],
    "schema_version or ts is not the host's": [create(EventSchema, { ...start(0n), schemaVersion: 0 })],
    "the kind is not that of the body": [create(EventSchema, { ...start(0n), kind: EventKind.EVENT_END })],
    "CANCEL is not followed by END CANCELED": [start(0n), cancel, output()],
    "EXECUTION_START has no execution id": [start(0n, "")],
    "two start markers have one execution id": [start(0n), end("COMPLETED"), start(0n)],
    "a turn starts on a cold session without RESUME": [suspend!, start(0n)],
    "a turn starts before the inputs of the one before it": [start(1n), start(0n, "e2")],
    "EXECUTION_START does not say how many inputs there are": [start(undefined)],
    "a record follows the END of its execution, or a later turn's start": [start(0n), end("COMPLETED"), output()],
    "a record belongs to no turn": [output()],
    "a turn goes on on a cold session without RESUME": [start(0n), suspend!, output()],
    "more inputs than EXECUTION_START says": [start(1n), input(), input()],
    "fewer inputs than EXECUTION_START says": [start(1n), output()],
    "an effect comes between a MODEL_CALL and its completion": [start(0n), call("1"), usage()],
    "a second MODEL_CALL before the first one's completion": [start(0n), call("1"), call("2")],
    "a MODEL_CALL's id is empty or was used before": [start(0n), call("1"), output(), call("1")],
    "END has another state than COMPLETED, FAILED, CANCELED": [start(0n), end("DONE")],
    "END CANCELED without CANCEL before it": [start(0n), end("CANCELED")],
    "CANCEL of a turn that is not open": [cancel],
    "SUSPEND of a cold session": [suspend!, suspend!],
    "RESUME of a session that is not cold": [resume!],
    "DELETE while a turn is open": [start(0n), remove!],
    "a lifecycle event of kind 4, which nothing here writes": [lifecycle(LIFECYCLE_BASELINE)],
  };
  it.each(Object.entries(WRONG))("finds: %s", (fault, events) => {
    expect(faultsOf(events.slice(0, -1))).toEqual([]);
    expect(faultsOf(events)).toContain(fault);
  });
});
