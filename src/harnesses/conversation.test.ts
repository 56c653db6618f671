import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { seqOf } from "../base/ids.ts";
import {
  EventSchema,
  HarnessEndSchema,
  Lifecycle_Kind,
  LifecycleSchema,
  MessageSchema,
  ToolResultSchema,
  type Event,
  type Message,
} from "../gen/agentsessions/v1/common_pb.ts";
import { EventKind, textMessage, type HistoryPage } from "../spi/index.ts";
import { Conversation, conversationOf } from "./conversation.ts";

type Parts = NonNullable<Parameters<typeof create<typeof MessageSchema>>[1]>["parts"];
const message = (role: string, parts: Parts): Message => create(MessageSchema, { role, parts: parts ?? [] });
const event = (kind: EventKind, body: Event["body"]): Event => create(EventSchema, { kind, body });
const input = (value: Message) => event(EventKind.EVENT_INPUT, { case: "message", value });
const output = (value: Message) => event(EventKind.EVENT_OUTPUT, { case: "message", value });
const user = (text: string) => input(textMessage("user", text));
const assistant = (text: string) => output(textMessage("assistant", text));
const calls = (...ids: string[]) =>
  message(
    "assistant",
    ids.map((id) => ({ part: { case: "toolCall", value: { id, tool: "t", args: {} } } })),
  );
const results = (...values: { id: string; output?: { ok: boolean }; isError?: boolean; error?: string }[]) =>
  message(
    "tool",
    values.map((value) => ({ part: { case: "toolResult", value } })),
  );
const result = (id: string, ok = true): Event => {
  const [part] = results({ id, output: { ok } }).parts;
  if (part?.part.case !== "toolResult") throw new Error("no result");
  return event(EventKind.EVENT_TOOL_RESULT, { case: "result", value: part.part.value });
};
const unknown = (id: string) => ({
  id,
  isError: true,
  error: "the outcome of this call is unknown: the turn ended before a result was recorded",
});
const page = (events: Event[], firstSeq = 1): HistoryPage => ({ firstSeq: seqOf(firstSeq), events });
const of = (...events: Event[]) => conversationOf([page(events)]);

describe("a conversation", () => {
  it("is what was said, in order; of a failed or abandoned turn that is its input", () => {
    const said = of(
      event(EventKind.EVENT_EXECUTION_START, { case: undefined }),
      user("one"),
      event(EventKind.EVENT_MODEL_CALL, { case: undefined }),
      assistant("1"),
      event(EventKind.EVENT_END, { case: undefined }),
      user("two"),
      event(EventKind.EVENT_ERROR, { case: undefined }),
      user("three"),
    );
    expect(said).toEqual([
      textMessage("user", "one"),
      textMessage("assistant", "1"),
      textMessage("user", "two"),
      textMessage("user", "three"),
    ]);
  });

  it("is the same however the journal is cut into pages", () => {
    const events = [user("a"), output(calls("x", "y")), result("y"), user("b"), assistant("c")];
    const pages = events.map((single, index) => page([single], index + 1));
    expect(conversationOf(pages)).toEqual(of(...events));
  });

  it("keeps reasoning and tool parts where they were said", () => {
    const mixed = message("assistant", [
      { part: { case: "reasoning", value: { provider: "anthropic", opaque: { case: "opaqueBytes", value: Uint8Array.of(1) } } } },
      { part: { case: "text", value: { text: "so" } } },
      { part: { case: "toolCall", value: { id: "x", tool: "t" } } },
    ]);
    expect(of(user("a"), output(mixed), result("x"))[1]).toBe(mixed);
  });

  it("puts results behind their calls, in the order of the calls, whenever they came", () => {
    const said = of(user("go"), output(calls("a", "b")), assistant("working"), result("b"), result("a"), assistant("done"));
    expect(said).toEqual([
      textMessage("user", "go"),
      calls("a", "b"),
      results({ id: "a", output: { ok: true } }, { id: "b", output: { ok: true } }),
      textMessage("assistant", "working"),
      textMessage("assistant", "done"),
    ]);
  });

  it("says of a call without a result that its outcome is unknown", () => {
    expect(of(user("go"), output(calls("a", "b")), result("a"), user("and?"))).toEqual([
      textMessage("user", "go"),
      calls("a", "b"),
      results({ id: "a", output: { ok: true } }, unknown("b")),
      textMessage("user", "and?"),
    ]);
  });

  it("takes a result from an input, and what else that input says behind it", () => {
    const mixed = message("tool", [...results({ id: "a", output: { ok: true } }).parts, ...textMessage("tool", "note").parts]);
    expect(of(user("go"), output(calls("a")), input(mixed))).toEqual([
      textMessage("user", "go"),
      calls("a"),
      results({ id: "a", output: { ok: true } }),
      textMessage("user", "note"),
    ]);
  });

  it("keeps a result that an input brought for no call as text, and leaves out one of the journal's", () => {
    const stray = results({ id: "gone", output: { ok: false } });
    expect(of(user("go"), result("never"), input(stray))).toEqual([
      textMessage("user", "go"),
      textMessage("user", '[result for an unknown tool call: {"ok":false}]'),
    ]);
  });

  it("gives a result to the latest call of its id", () => {
    expect(of(user("go"), output(calls("a")), result("a", false), output(calls("a")), result("a", true), result("a", false))).toEqual([
      textMessage("user", "go"),
      calls("a"),
      results({ id: "a", output: { ok: false } }),
      calls("a"),
      results({ id: "a", output: { ok: true } }),
    ]);
  });

  it("leaves out what says nothing", () => {
    expect(of(user(""), input(message("user", [])), output(message("assistant", [{ part: { case: undefined } }])))).toEqual([]);
  });

  it("gives a message of no known role to the side that it came from", () => {
    const anonymous = (text: string) => message("", textMessage("user", text).parts);
    expect(of(input(anonymous("a")), output(anonymous("b")), input(message("robot", textMessage("user", "c").parts)))).toEqual([
      textMessage("user", "a"),
      textMessage("assistant", "b"),
      textMessage("user", "c"),
    ]);
  });

  describe("with observations", () => {
    const called = (id: string, executionId = "e"): Event =>
      create(EventSchema, { kind: EventKind.EVENT_TOOL_CALL, executionId, body: { case: "tool", value: { id, tool: "eyes" } } });
    const observed = message("user", [
      { part: { case: "text", value: { text: "[Observation of how things stand at this point:]" } } },
      { part: { case: "data", value: { data: { ok: true } } } },
    ]);

    it("has them where they were made, as the user's", () => {
      expect(of(user("go"), called("observation.e"), result("observation.e"), assistant("so"))).toEqual([
        textMessage("user", "go"),
        observed,
        textMessage("assistant", "so"),
      ]);
    });

    it("leaves out one that failed, one without a result, and a call that is another turn's or nobody's", () => {
      const failed = event(EventKind.EVENT_TOOL_RESULT, {
        case: "result",
        value: create(ToolResultSchema, { id: "observation.e", isError: true, error: "dark", output: { ok: true } }),
      });
      expect(of(user("go"), called("observation.e"), failed)).toEqual([textMessage("user", "go")]);
      expect(of(user("go"), called("observation.e"), user("and?"))).toEqual([textMessage("user", "go"), textMessage("user", "and?")]);
      for (const executionId of ["f", ""]) {
        const call = called("observation.e", executionId);
        expect(of(user("go"), call, result("observation.e"))).toEqual([textMessage("user", "go")]);
      }
    });

    it("takes a call under such an id for the model's where a model made it", () => {
      expect(of(user("go"), output(calls("observation.e")), called("observation.e"), result("observation.e"))).toEqual([
        textMessage("user", "go"),
        calls("observation.e"),
        results({ id: "observation.e", output: { ok: true } }),
      ]);
    });
  });

  it("goes on as it was from wherever a copy is taken, and leaves what it was copied from as it is", () => {
    const baseline = (detail: string): Event =>
      event(EventKind.EVENT_LIFECYCLE, {
        case: "lifecycle",
        value: create(LifecycleSchema, { kind: Lifecycle_Kind.LIFECYCLE_BASELINE, detail: `holdfast:${detail}` }),
      });
    const call = (id: string, tool: string): Event =>
      create(EventSchema, { kind: EventKind.EVENT_TOOL_CALL, executionId: "e", body: { case: "tool", value: { id, tool } } });
    const heard = event(EventKind.EVENT_TOOL_RESULT, {
      case: "result",
      value: create(ToolResultSchema, { id: "inbox", content: textMessage("user", "and this").parts }),
    });
    const events = [
      user("go"),
      output(calls("a", "b", "a")),
      result("b"),
      result("a~2"),
      result("a"),
      baseline('{"results":1,"reasoning":0,"summary":2}'),
      assistant("the notes"),
      call("inbox", "holdfast.inbox"),
      heard,
      call("observation.e", "eyes"),
      result("observation.e"),
      output(calls("a")),
      result("a~3"),
      assistant("done"),
    ];
    const seen = ({ entries, baseline: at, summary }: Conversation) => structuredClone({ entries, at, summary });
    const until = (seq: number): Conversation => {
      const conversation = new Conversation();
      conversation.addEvents(events.slice(0, seq));
      return conversation;
    };
    for (let seq = 0; seq <= events.length; seq += 1) {
      const [original, untouched] = [until(seq), until(seq)];
      const copy = original.copy();
      copy.addEvents(events.slice(seq));
      expect(seen(copy)).toEqual(seen(until(events.length)));
      expect(seen(original)).toEqual(seen(untouched));
      original.addEvents(events.slice(seq));
      expect(seen(original)).toEqual(seen(copy));
    }
    expect(seen(until(events.length))).toMatchObject({ summary: "the notes", at: { summary: 2 } });
    expect(
      until(events.length)
        .entries.flatMap((entry) => entry.calls)
        .every((slot) => slot.result !== undefined),
    ).toBe(true);
  });

  it("gives a call a name of its own in the session, and its result to it alone", () => {
    const end = event(EventKind.EVENT_END, { case: "end", value: create(HarnessEndSchema, { state: "COMPLETED" }) });
    const conversation = new Conversation();
    conversation.addPage(page([user("go"), output(calls("a")), end, user("again"), output(calls("a")), result("a~2", false)]));
    conversation.beginTurn();
    expect(conversation.addOutput(calls("a", "b")).map(({ hostId }) => hostId)).toEqual(["a~3", "b"]);
    expect(conversation.messages().filter(({ role }) => role === "tool")).toEqual([
      results(unknown("a")),
      results({ id: "a", output: { ok: false } }),
      results(unknown("a"), unknown("b")),
    ]);
  });

  it("takes the inputs of the turn that begins, results for former calls among them", () => {
    const conversation = new Conversation();
    conversation.addPage(page([user("go"), output(calls("a"))]));
    conversation.addInput(results({ id: "a", output: { ok: true } }));
    conversation.addInput(textMessage("user", "next"));
    expect(conversation.messages()).toEqual([
      textMessage("user", "go"),
      calls("a"),
      results({ id: "a", output: { ok: true } }),
      textMessage("user", "next"),
    ]);
  });
});
