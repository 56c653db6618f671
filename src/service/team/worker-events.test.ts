import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { sessionUidOf } from "../../base/index.ts";
import { EventKind, EventSchema, Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import { INBOX_TOOL, textMessage } from "../../spi/index.ts";
import { WorkerEvents } from "./worker-events.ts";

type Body = NonNullable<MessageInitShape<typeof EventSchema>["body"]>;

const event = (kind: EventKind, body: Body) => create(EventSchema, { kind, body });
const start = (config = "") =>
  event(EventKind.EVENT_EXECUTION_START, { case: "executionStart", value: { config: new TextEncoder().encode(config) } });
const call = () => event(EventKind.EVENT_MODEL_CALL, { case: "model", value: {} });
const output = (text: string) => event(EventKind.EVENT_OUTPUT, { case: "message", value: textMessage("assistant", text) });
const tool = (name: string) => event(EventKind.EVENT_TOOL_CALL, { case: "tool", value: { id: "a", tool: name } });
const moved = (kind: Lifecycle_Kind, detail = "") => event(EventKind.EVENT_LIFECYCLE, { case: "lifecycle", value: { kind, detail } });
const end = (state: string, code = 0, description = "") =>
  event(EventKind.EVENT_END, { case: "end", value: { state, ...(code === 0 ? {} : { error: { code, description } }) } });

/** What a worker with these records tells, in short words. */
function told(...events: readonly ReturnType<typeof event>[]): string[] {
  const worker = new WorkerEvents({ worker: sessionUidOf("w"), parent: sessionUidOf("p"), hostId: "edge" });
  return events
    .flatMap((each) => worker.add(each))
    .map(({ event: { case: kind, value } }) => {
      const { $typeName: _, workerId: __, ...more } = value ?? {};
      return [kind, ...Object.values(more).map(String)].join(" ");
    });
}

describe("what is told of a worker", () => {
  it("is its start, its phases, its tools, its last words and its exit", () => {
    expect(told(start(), call(), output("I look"), tool("look"), call(), output("Found it."), end("COMPLETED"))).toEqual([
      "workerStarted edge",
      "workerPhase 1 react",
      "workerToolCall look",
      "workerPhase 2 react",
      "workerCompleted Found it.",
      "workerExited p",
    ]);
  });

  it("has the mode of its turn", () => {
    expect(told(start('{"mode":"ooda_re_act"}'), call())[1]).toBe("workerPhase 1 ooda_re_act");
    for (const config of ["", "no JSON", "[]", '{"mode":"fast"}', '{"mode":1}'])
      expect(told(start(config), call())[1]).toBe("workerPhase 1 react");
  });

  it("counts no phase for the model call of a summary, and none of its inbox", () => {
    const account = (summary: number) =>
      moved(Lifecycle_Kind.LIFECYCLE_BASELINE, `holdfast:{"results":4,"reasoning":4,"summary":${summary}}`);
    const events = [start(), call(), account(0), call(), account(3), call(), output("notes"), tool(INBOX_TOOL), call()];
    expect(told(...events)).toEqual(["workerStarted edge", "workerPhase 1 react", "workerPhase 2 react", "workerPhase 3 react"]);
  });

  it("is of its first turn: one that was given up for another has failed, and nothing of the other is told", () => {
    expect(told(start(), call(), start(), call(), output("later"), end("COMPLETED"))).toEqual([
      "workerStarted edge",
      "workerPhase 1 react",
      "workerFailed e_stop",
      "workerExited p",
    ]);
  });

  it.each([
    ["a cancel", [moved(Lifecycle_Kind.LIFECYCLE_CANCEL, "USER"), end("CANCELED", 1)], "e_stop"],
    ["a deadline", [moved(Lifecycle_Kind.LIFECYCLE_CANCEL, "TIMEOUT"), end("CANCELED", 1)], "timeout"],
    ["a failure by time", [end("FAILED", 4, "it took too long")], "timeout"],
    ["a failed model", [end("FAILED", 14, "model: its provider is gone")], "model_error"],
    ["a missing observation", [end("FAILED", 9, "observation: there is none")], "safety_violation"],
    ["what is not permitted", [end("FAILED", 7, "it may not")], "safety_violation"],
    ["a failure without a word", [end("FAILED")], "model_error"],
    ["its deletion", [moved(Lifecycle_Kind.LIFECYCLE_DELETE)], "e_stop"],
  ])("names in one of four words why it failed: %s", (_, events, reason) => {
    expect(told(start(), ...events)).toEqual(["workerStarted edge", `workerFailed ${reason}`, "workerExited p"]);
  });

  it("is of its first turn: what comes after its exit is not", () => {
    expect(told(start(), end("COMPLETED"), start(), call(), end("FAILED"))).toEqual([
      "workerStarted edge",
      "workerCompleted ",
      "workerExited p",
    ]);
  });

  it("is nothing of a session that was deleted before it began", () => {
    expect(told(moved(Lifecycle_Kind.LIFECYCLE_DELETE))).toEqual([]);
  });
});
