import { describe, expect, it } from "vitest";
import { HoldfastError, type ErrorCode } from "../base/errors.ts";
import { textMessage, type ModelChunk, type ModelFacts, type ModelProvider, type ModelRequest } from "../spi/index.ts";
import { VirtualClock } from "../testing/ports.ts";
import { neverAborted } from "../testing/provider-fixture.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { createModelCatalog } from "./catalog.ts";
import { createServedModels, type ServingOptions } from "./serving.ts";
import { usageOf } from "./usage.ts";

const asked: ModelRequest[] = [];
const completed = (model: string, facts: ModelFacts = {}): ModelChunk => ({
  kind: "completed",
  response: {
    message: textMessage("assistant", `of ${model}`),
    usage: usageOf(model, { inputTokens: 1_000, outputTokens: 100, reasoningTokens: 0 }),
  },
  facts: { stopReason: "stop", attempts: 1, latencyMs: 1, ...facts },
});
const failure = (code: ErrorCode) => new HoldfastError(code, `model: ${code}`, { details: { attempts: 3 } });

type Play = (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelChunk>;
const provider = (name: string, play: Play): ModelProvider => ({
  name,
  complete: (request, { signal }) => {
    asked.push(request);
    return play(request, signal);
  },
});
const answers = async function* ({ model }: ModelRequest): AsyncGenerator<ModelChunk> {
  yield { kind: "text", partIndex: 0, text: `of ${model}` };
  yield completed(model, { cachedInputTokens: 400, cacheWriteTokens: 100 });
};
const fails = (code: ErrorCode, first?: ModelChunk): Play =>
  async function* () {
    if (first !== undefined) yield first;
    throw failure(code);
  };

function serve(routes: Readonly<Record<string, Play>>, options: Partial<ServingOptions> = {}) {
  asked.length = 0;
  const catalog = createModelCatalog({
    routes: Object.entries(routes).map(([match, play]) => ({ match, provider: provider(match.replace("*", ""), play) })),
  });
  const models = createServedModels({ catalog, clock: new VirtualClock(), ...options });
  return (request: Partial<ModelRequest> & { readonly model: string }, signal = neverAborted()) => {
    const found = models.providerOf(request.model);
    if (found === undefined) throw new Error("not served");
    return collectCompletion(found.complete({ messages: [textMessage("user", "hi")], ...request }, { signal }));
  };
}

describe("a model that fails", () => {
  const fallbacks = [{ match: "a*", value: ["b1", "c1"] }];

  it.each<ErrorCode>(["unavailable", "resource_exhausted", "failed_precondition"])(
    "for good with %s is replaced by the next of its list",
    async (code) => {
      const complete = serve({ "a*": fails(code), "b*": fails("unavailable"), "c*": answers }, { fallbacks });
      const { response, facts } = await complete({ model: "a1" });
      expect(response.usage.model).toBe("c1");
      expect(facts).toMatchObject({ model: "c1", provider: "c", attempts: 7 });
      expect(asked.map(({ model }) => model)).toEqual(["a1", "b1", "c1"]);
    },
  );

  it.each<ErrorCode>(["invalid_argument", "cancelled", "internal"])("with %s is not replaced", async (code) => {
    const complete = serve({ "a*": fails(code), "b*": answers, "c*": answers }, { fallbacks });
    await expect(complete({ model: "a1" })).rejects.toMatchObject({ code });
    expect(asked).toHaveLength(1);
  });

  it("after something was handed on is not replaced", async () => {
    const complete = serve(
      { "a*": fails("unavailable", { kind: "text", partIndex: 0, text: "ha" }), "b*": answers, "c*": answers },
      { fallbacks },
    );
    await expect(complete({ model: "a1" })).rejects.toMatchObject({ code: "unavailable" });
    expect(asked).toHaveLength(1);
  });

  it("is what the error tells of when all of them failed, a fallback that refuses the request among them", async () => {
    const complete = serve(
      { "a*": fails("resource_exhausted"), "b*": fails("invalid_argument"), "c*": fails("unavailable") },
      { fallbacks },
    );
    await expect(complete({ model: "a1" })).rejects.toMatchObject({ code: "resource_exhausted", details: { attempts: 3, fallbacks: 2 } });
    expect(asked).toHaveLength(3);
  });

  it("has the list of the request's own before that of the host, and no provider sees it", async () => {
    const complete = serve({ "a*": fails("unavailable"), "b*": answers, "c*": answers }, { fallbacks });
    await complete({ model: "a1", params: { temperature: "1", fallback_models: '["c9"]' } });
    expect(asked.map(({ model, params }) => [model, params])).toEqual([
      ["a1", { temperature: "1" }],
      ["c9", { temperature: "1" }],
    ]);
    await expect(complete({ model: "a1", params: { fallback_models: "[]" } })).rejects.toMatchObject({ code: "unavailable" });
  });

  it.each(["nobody", '["b1",""]', JSON.stringify(Array.from({ length: 9 }, (_, index) => `b${index}`))])(
    "refuses the list %s",
    async (list) => {
      const complete = serve({ "a*": answers, "b*": answers, "c*": answers });
      await expect(complete({ model: "a1", params: { fallback_models: list } })).rejects.toMatchObject({
        code: "invalid_argument",
        field: "params.fallback_models",
      });
      expect(asked).toHaveLength(0);
    },
  );

  it("because its call was called off is not replaced", async () => {
    const controller = new AbortController();
    const aborting: Play = async function* () {
      controller.abort();
      throw failure("unavailable");
    };
    const complete = serve({ "a*": aborting, "b*": answers, "c*": answers }, { fallbacks });
    await expect(complete({ model: "a1" }, controller.signal)).rejects.toMatchObject({ code: "unavailable" });
    expect(asked).toHaveLength(1);
  });
});

describe("a limit of open calls", () => {
  /** A provider whose calls end when they are told to. */
  function held() {
    const gates: PromiseWithResolvers<void>[] = [];
    const play: Play = async function* ({ model }) {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      await gate.promise;
      yield completed(model);
    };
    return { gates, play };
  }
  const turnOfTheLoop = () => new Promise<void>((resolve) => setImmediate(resolve));

  it("holds for one provider, and those that wait come in their order", async () => {
    const a = held();
    const complete = serve({ "a*": a.play, "b*": answers }, { concurrency: { a: 2 } });
    const calls = ["a1", "a2", "a3", "a4"].map((model) => complete({ model }));
    await complete({ model: "b1" });
    await turnOfTheLoop();
    expect(asked.map(({ model }) => model)).toEqual(["a1", "a2", "b1"]);
    a.gates[1]?.resolve();
    await calls[1];
    await turnOfTheLoop();
    expect(asked.at(-1)?.model).toBe("a3");
    for (let index = 0; index < 4; index++) {
      a.gates[index]?.resolve();
      await turnOfTheLoop();
    }
    await Promise.all(calls);
    expect(asked.map(({ model }) => model)).toEqual(["a1", "a2", "b1", "a3", "a4"]);
  });

  it("gives a slot back when a call fails, when nobody reads on, and when who waits is called off", async () => {
    const gate = Promise.withResolvers<void>();
    let calls = 0;
    const play: Play = async function* ({ model }) {
      if (calls++ === 0) throw failure("internal");
      yield { kind: "text", partIndex: 0, text: "a" };
      await gate.promise;
      yield completed(model);
    };
    const complete = serve({ "a*": play }, { concurrency: { a: 1 } });
    await expect(complete({ model: "a1" })).rejects.toMatchObject({ code: "internal" });
    const open = complete({ model: "a2" });
    const controller = new AbortController();
    const waits = complete({ model: "a3" }, controller.signal);
    await turnOfTheLoop();
    controller.abort(new HoldfastError("deadline_exceeded", "late"));
    await expect(waits).rejects.toMatchObject({ code: "deadline_exceeded" });
    gate.resolve();
    await open;
    await complete({ model: "a4" });
    expect(asked.map(({ model }) => model)).toEqual(["a1", "a2", "a4"]);
  });

  it("gives a slot back when the caller stops reading", async () => {
    asked.length = 0;
    const catalog = createModelCatalog({ routes: [{ match: "a", provider: provider("a", answers) }] });
    const models = createServedModels({ catalog, clock: new VirtualClock(), concurrency: { a: 1 } });
    for (let count = 0; count < 3; count++) {
      for await (const chunk of models.providerOf("a")!.complete({ model: "a", messages: [] }, { signal: neverAborted() })) {
        expect(chunk.kind).toBe("text");
        break;
      }
    }
    expect(asked).toHaveLength(3);
  });

  it.each([0, 1.5, -1])("of %d is refused", (count) => {
    expect(() => serve({ a: answers }, { concurrency: { a: count } })).toThrow("concurrency.a");
  });
});

describe("a price table", () => {
  const price = (value: ServingOptions["prices"]) =>
    serve({ "a*": fails("unavailable"), "b*": answers }, { prices: value, fallbacks: [{ match: "a1", value: ["b1"] }] });

  it("gives the cost in nanodollars, cached input apart, for the model that answered", async () => {
    const complete = price([
      { match: "a*", value: { input: 1_000, output: 1_000 } },
      { match: "b*", value: { input: 2, cachedInput: 0.2, cacheWrite: 2.5, output: 8 } },
    ]);
    // 500 × 2 + 400 × 0.2 + 100 × 2.5 + 100 × 8 dollars a million tokens are 2 130 microdollars.
    expect((await complete({ model: "a1" })).facts.costNanoDollars).toBe(2_130_000);
  });

  it("takes cached input as input where it has no price of its own, and rounds up", async () => {
    const complete = price([{ match: "b1", value: { input: 0.000_001, output: 0 } }]);
    expect((await complete({ model: "b1" })).facts.costNanoDollars).toBe(1);
  });

  it("says nothing of a model that is not in it", async () => {
    expect((await price([{ match: "c", value: { input: 1, output: 1 } }])({ model: "b1" })).facts).not.toHaveProperty("costNanoDollars");
  });

  it.each([
    [{ input: -1, output: 1 }, "prices.b.input"],
    [{ input: 1, output: 0.000_000_1 }, "prices.b.output"],
    [{ input: 1, output: 1, cacheWrite: Number.NaN }, "prices.b.cacheWrite"],
  ])("refuses %j", (value, field) => {
    expect(() => price([{ match: "b", value }])).toThrow(expect.objectContaining({ code: "invalid_argument", field }));
  });
});
