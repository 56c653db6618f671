import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { EventKind, EventSchema, LogRecordSchema, type Event } from "../../gen/agentsessions/v1/common_pb.ts";
import { TurnReader, type PastTurns } from "./past-turns.ts";

type Body = MessageInitShape<typeof EventSchema>["body"];

/** What a reader says of these events, which have the seqs 1, 2, 3. */
function read(...events: readonly Event[]): Omit<PastTurns, "model"> {
  const reader = new TurnReader();
  for (const [index, event] of events.entries()) reader.add(create(LogRecordSchema, { seq: BigInt(index + 1), event }));
  return reader.result(BigInt(events.length));
}

const event = (body: Body, kind: EventKind = EventKind.EVENT_OUTPUT): Event =>
  create(EventSchema, { kind, ...(body === undefined ? {} : { body }) });
const start = (config: unknown): Event =>
  event({
    case: "executionStart",
    value: { config: new TextEncoder().encode(typeof config === "string" ? config : JSON.stringify(config)) },
  });
const said = (text: string): Event =>
  event({ case: "message", value: { role: "user", parts: [{ part: { case: "text", value: { text } } }] } }, EventKind.EVENT_INPUT);
const answer = (text: string): Event =>
  event({ case: "message", value: { role: "assistant", parts: [{ part: { case: "text", value: { text } } }] } });
const end = (state = "COMPLETED"): Event => event({ case: "end", value: { state } });
const turn = (id: string): Event[] => [start({ client: { message_id: id } }), said(`said ${id}`), answer(`answer ${id}`), end()];

const words = ({ printed }: Pick<PastTurns, "printed">): string[] =>
  printed.map((one) => {
    if (one.kind === "answer") return one.block.text;
    if (one.kind === "call") return `call ${one.summary}`;
    if (one.kind === "outcome") return `outcome ${one.outcome.result}`;
    return one.kind === "lines" ? "lines" : one.text;
  });

describe("what was said before", () => {
  it("is the last turns, and nothing is open", () => {
    const past = read(...turn("1"), ...turn("2"), ...turn("3"), ...turn("4"));
    expect(words(past)).toEqual(["said 2", "answer 2", "said 3", "answer 3", "said 4", "answer 4"]);
    expect(past).toMatchObject({ fromSeq: 16n, openMessageId: undefined });
    expect([...past.messageIds]).toEqual(["1", "2", "3", "4"]);
  });

  it("ends before the answer of the turn that is open, which the stream tells from its start", () => {
    const past = read(...turn("1"), start({ client: { message_id: "2" } }), said("said 2"), answer("so far"));
    expect(words(past)).toEqual(["said 1", "answer 1", "said 2"]);
    expect(past).toMatchObject({ fromSeq: 4n, openMessageId: "2" });
  });

  it("shows calls with their results", () => {
    const past = read(
      start({}),
      said("go"),
      event({ case: "tool", value: { id: "a", tool: "read", args: { path: "x.txt" } } }),
      event({ case: "tool", value: { id: "b", tool: "camera__shot", args: { zoom: 2 } } }),
      event({ case: "result", value: { id: "b", isError: true, error: "dark" } }),
      event({ case: "result", value: { id: "a", content: [{ part: { case: "text", value: { text: "inside" } } }] } }),
      end("CANCELED"),
    );
    expect(words(past)).toEqual(["go", 'call camera__shot {"zoom":2}', "outcome dark", "call read x.txt", "outcome inside", "cancelled"]);
  });

  it("says of a call that failed what its client said of it", () => {
    const content = [{ part: { case: "text" as const, value: { text: "not allowed" } } }];
    const past = read(
      start({}),
      event({ case: "result", value: { id: "a", isError: true, error: "the tool failed", content, output: { truncated: false } } }),
      event({ case: "result", value: { id: "b", isError: true, error: "the tool failed", output: { truncated: false } } }),
      end(),
    );
    expect(words(past)).toEqual(["call a", "outcome not allowed", "call b", "outcome the tool failed"]);
  });

  it("takes the config of other harnesses as it is", () => {
    expect(read(start("no json"), said("a")).openMessageId).toBe("");
    expect(read(start('{"client":7}'), said("a")).openMessageId).toBe("");
  });

  it("is nothing of a session without records", () => {
    expect(read()).toMatchObject({ printed: [], fromSeq: 0n, openMessageId: undefined });
  });
});
