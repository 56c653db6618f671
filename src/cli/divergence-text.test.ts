import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inputHash } from "../canon/index.ts";
import { ModelCallSchema, type ModelCall } from "../gen/agentsessions/v1/common_pb.ts";
import { ReplayDivergenceSchema } from "../gen/holdfast/v1/replay_pb.ts";
import { nodeDigest } from "../node/index.ts";
import { modelRequest } from "../testing/events.ts";
import { divergenceLines } from "./divergence-text.ts";
import { requestLines } from "./request-text.ts";

type Divergence = Exclude<MessageInitShape<typeof ReplayDivergenceSchema>, undefined>;

const text = (role: string, ...texts: string[]) => ({
  role,
  parts: texts.map((each) => ({ part: { case: "text" as const, value: { text: each } } })),
});
const call = (init: MessageInitShape<typeof ModelCallSchema>): ModelCall => create(ModelCallSchema, init);
const report = (init: Divergence): string[] =>
  divergenceLines(create(ReplayDivergenceSchema, init), nodeDigest).map((line) => `${line.kind === "note" ? "# " : ""}${line.text}`);

describe("a model request as lines", () => {
  it("has everything that it sends: model, params, tools, messages by role and part", () => {
    const lines = requestLines(
      call({
        model: "m",
        params: { b: "2", a: "1" },
        toolChoice: { mode: 3, name: "look" },
        tools: [{ name: "look", description: "looks\ntwice", inputSchema: { type: "object", additionalProperties: false } }],
        messages: [
          text("system", "be kind\nand brief"),
          {
            role: "assistant",
            parts: [
              { part: { case: "reasoning", value: { provider: "p", opaque: { case: "opaqueBytes", value: new Uint8Array([1, 2]) } } } },
              { part: { case: "toolCall", value: { id: "c1", tool: "look", args: { z: 1, a: [true, null] }, mediation: 2 } } },
            ],
          },
          {
            role: "tool",
            parts: [
              {
                part: {
                  case: "toolResult",
                  value: { id: "c1", isError: true, error: "no", content: [{ part: { case: "text", value: { text: "why" } } }] },
                },
              },
              { part: { case: "file", value: { mime: "image/png", source: { case: "uri", value: "blob://x" } } } },
              { part: { case: "data", value: { data: { k: "v" } } } },
            ],
          },
        ],
      }),
      nodeDigest,
    );
    expect(lines).toEqual([
      "model m",
      "param a = 1",
      "param b = 2",
      "tool choice REQUIRED look",
      "tool look",
      "  looks",
      "  twice",
      'input schema {"additionalProperties":false,"type":"object"}',
      "system:",
      "  be kind",
      "  and brief",
      "assistant:",
      "  [reasoning p]",
      "    2 bytes, sha256 a12871fee210fb8619291eaea194581cbd2531e4b23759d225f6806923f63222",
      '  [calls look c1 CONTROLLER_MEDIATED] {"a":[true,null],"z":1}',
      "tool:",
      "  [result c1 failed no]",
      "    why",
      "  [file image/png blob://x]",
      '  [data] {"k":"v"}',
    ]);
  });

  it("differs where the hash does, whatever the requests hold", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.tuple(modelRequest(), modelRequest()),
          modelRequest().map((one) => [one, one] as const),
        ),
        ([left, right]) => {
          const callOf = (request: typeof left) =>
            call({ ...request, params: { ...request.params }, messages: [...request.messages], tools: [...(request.tools ?? [])] });
          const isSame = inputHash(left, nodeDigest) === inputHash(right, nodeDigest);
          expect(requestLines(callOf(left), nodeDigest).join("\n") === requestLines(callOf(right), nodeDigest).join("\n")).toBe(isSame);
        },
      ),
      { seed: 20261130, numRuns: 2_000 },
    );
  });

  it("lets no text steer the terminal", () => {
    expect(requestLines(call({ model: "\u001b[2J", messages: [text("user", "a\u0007")] }), nodeDigest)).toEqual([
      "model \\u001b[2J",
      "user:",
      "  a\\u0007",
    ]);
  });
});

describe("a divergence", () => {
  const recordedCall = call({
    model: "m",
    messages: [text("system", "be kind"), text("user", "1", "2", "3", "4", "5", "6")],
    inputHash: "aa",
  });
  const askedCall = call({
    model: "m",
    messages: [text("system", "be rude"), text("user", "1", "2", "3", "4", "5", "6")],
    inputHash: "bb",
  });
  const ofModel = { seq: 9n, reason: "the model request differs", recordedKind: "model", askedKind: "model", recordedCall, askedCall };

  it("of a model call is a difference of the two requests, folded", () => {
    expect(report({ ...ofModel, recordedCallWhole: true })).toEqual([
      "seq 9: the model request differs",
      "# - recorded, + asked for",
      "  model m",
      "  system:",
      "-   be kind",
      "+   be rude",
      "  user:",
      "    1",
      "    2",
      "# … 4 lines are the same",
    ]);
  });

  it("says so when the recorded request could not be rebuilt whole, or not at all", () => {
    expect(report(ofModel)[1]).toContain("could not be rebuilt whole");
    const bare = call({ model: "m", inputHash: "aa" });
    const lines = report({ ...ofModel, recordedCall: bare });
    expect(lines[1]).toBe("# the recorded request could not be rebuilt: of it the journal has model, params and the hash aa only");
    expect(lines).toContain("+   be rude");
  });

  it("names the hashes where the two look the same", () => {
    expect(report({ ...ofModel, askedCall: { ...recordedCall, inputHash: "bb" }, recordedCallWhole: true })[1]).toBe(
      "# they look the same here; their hashes are aa (recorded) and bb (asked for)",
    );
  });

  it("of an output is a difference of the texts; of two kinds, both sides; of an end, what is left over", () => {
    expect(
      report({ seq: 4n, reason: "the text differs", recordedKind: "output", askedKind: "output", recordedText: "a\nb", askedText: "a\nc" }),
    ).toEqual(["seq 4: the text differs", "# - recorded, + asked for", "  a", "- b", "+ c"]);
    expect(
      report({ seq: 3n, reason: "r", recordedKind: "model", askedKind: "output", recordedCall: call({ model: "m" }), askedText: "bye" }),
    ).toEqual(["seq 3: r", "# recorded: a model call", "- model m", "# asked for: an output", "+ bye"]);
    expect(report({ seq: 5n, reason: "r", recordedKind: "usage" })).toEqual(["seq 5: r", "# recorded: usage", "# asked for: nothing more"]);
  });

  it("shows of a long line what differs in it", () => {
    const long = "x".repeat(100_000);
    const lines = report({
      seq: 1n,
      reason: "r",
      recordedKind: "output",
      askedKind: "output",
      recordedText: `${long}a${long}`,
      askedText: `${long}b${long}`,
    });
    expect(lines).toHaveLength(4);
    for (const line of lines.slice(2)) {
      expect(line.length).toBeLessThan(2_100);
      expect(line).toMatch(/^[-+] \(99800 characters\) …x{200}[ab]x+… \(98201 more characters\)$/);
    }
  });
});
