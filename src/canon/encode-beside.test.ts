import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventSchema, ToolChoice_Mode, type Message, type ToolDefinition } from "../gen/agentsessions/v1/common_pb.ts";
import { ModelFactsSchema, OfferedToolsSchema, RequestSketchSchema, type SketchedMessage } from "../gen/holdfast/v1/beside_pb.ts";
import { event } from "../testing/events.ts";
import { encodeModelFacts, encodeOfferedTools, encodeRequestSketch } from "./index.ts";

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const int32 = fc.integer();
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const MODES = [ToolChoice_Mode.UNSPECIFIED, ToolChoice_Mode.AUTO, ToolChoice_Mode.NONE, ToolChoice_Mode.REQUIRED];
const naturals = fc.array(fc.maxSafeNat().map(BigInt), { maxLength: 200 });
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(arbitrary, { nil: undefined });

/** Messages and definitions as events have them. */
const message: fc.Arbitrary<Message> = event().map(({ body }) =>
  body.case === "message" ? body.value : (create(EventSchema, { body: { case: "message", value: {} } }).body.value as Message),
);
const tools: fc.Arbitrary<ToolDefinition[]> = event().map(({ body }) => (body.case === "model" ? body.value.tools : []));

const source: fc.Arbitrary<SketchedMessage["source"]> = fc.oneof(
  int64.map((value) => ({ case: "seq", value }) as const),
  message.map((value) => ({ case: "message", value }) as const),
  naturals.map((seqs) => ({ case: "results", value: { $typeName: "holdfast.v1.RecordedResults", seqs } }) as const),
  fc.constant({ case: undefined } as const),
);

function requireSame(ours: Uint8Array, librarys: Uint8Array): void {
  expect(Buffer.from(ours).equals(librarys)).toBe(true);
}

describe("the encoding of what is kept beside a record is byte for byte what the library writes", () => {
  it("for the facts of a completion", () => {
    const counts = { cachedInputTokens: maybe(int64), cacheWriteTokens: maybe(int64), latencyMs: maybe(int64) };
    const totals = { costNanoDollars: maybe(int64), inputTokens: maybe(int64), outputTokens: maybe(int64) };
    const facts = fc.record({ stopReason: text, attempts: int32, model: text, provider: text, ...counts, ...totals });
    fc.assert(
      fc.property(facts, (any) => requireSame(encodeModelFacts(any), toBinary(ModelFactsSchema, create(ModelFactsSchema, any)))),
      { seed: 21, numRuns: 1000 },
    );
  });

  it("for the sketch of a request", () => {
    const added = fc.array(
      source.map((of): SketchedMessage => ({ $typeName: "holdfast.v1.SketchedMessage", source: of })),
      { maxLength: 5 },
    );
    const choice = maybe(
      fc.record({ $typeName: fc.constant("agentsessions.v1.ToolChoice" as const), mode: fc.constantFrom(...MODES), name: text }),
    );
    const sketch = fc.record({ baseSeq: int64, keptMessages: int32, added, toolsKept: fc.boolean(), tools, choice });
    fc.assert(
      fc.property(sketch, ({ choice: toolChoice, ...any }) => {
        const made = create(RequestSketchSchema, { ...any, toolChoice });
        requireSame(encodeRequestSketch(made), toBinary(RequestSketchSchema, made));
      }),
      { seed: 22, numRuns: 2000 },
    );
  });

  it("for the tools that a turn is offered", () => {
    fc.assert(
      fc.property(fc.record({ sameAsSeq: int64, tools }), (any) =>
        requireSame(encodeOfferedTools(any), toBinary(OfferedToolsSchema, create(OfferedToolsSchema, any))),
      ),
      { seed: 23, numRuns: 1000 },
    );
  });
});
