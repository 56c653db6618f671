import { describe, expect, it } from "vitest";
import { readAnthropicParams } from "./anthropic-params.ts";
import { openAiParams } from "./openai-params.ts";
import { readGoogleParams } from "./google-params.ts";
import { readParams } from "./params.ts";
import { RESPONSES_PARAMS } from "./responses-params.ts";

const openAi = (params: Record<string, string>) => readParams(params, openAiParams("max_tokens"));
const anthropic = (params: Record<string, string>) => readAnthropicParams(params, 1_000);
const refusal = (field: string, message?: string): unknown =>
  expect.objectContaining({ code: "invalid_argument", field, ...(message === undefined ? {} : { message: `${field}: ${message}` }) });
const thrown = (run: () => unknown): unknown => {
  try {
    return void run();
  } catch (error) {
    return error;
  }
};

describe("params of the OpenAI-compatible provider", () => {
  it("become typed options", () => {
    expect(
      openAi({
        temperature: "0.5",
        top_p: "1",
        max_tokens: "100",
        stop: '["a","b"]',
        seed: "-3",
        frequency_penalty: "-2",
        reasoning_effort: "low",
        response_format: "json_object",
        parallel_tool_calls: "false",
      }),
    ).toEqual({
      temperature: 0.5,
      top_p: 1,
      max_tokens: 100,
      stop: ["a", "b"],
      seed: -3,
      frequency_penalty: -2,
      reasoning_effort: "low",
      response_format: { type: "json_object" },
      parallel_tool_calls: false,
    });
  });

  it.each([
    ["temperature", "hot"],
    ["temperature", "2.1"],
    ["temperature", ""],
    ["temperature", "0x1"],
    ["top_p", "-0.1"],
    ["max_tokens", "0"],
    ["max_tokens", "1.5"],
    ["seed", "99999999999999999"],
    ["stop", ""],
    ["stop", '["",""]'],
    ["reasoning_effort", "enormous"],
    ["response_format", '{"type":"json_schema"}'],
    ["parallel_tool_calls", "yes"],
    ["reasoning_history", "some"],
  ])("refuse %s = %j and name the param", (name, value) => {
    expect(thrown(() => openAi({ [name]: value }))).toEqual(refusal(`params.${name}`));
  });

  it("take a stop sequence that begins like a list as it stands", () => {
    expect(openAi({ stop: "[END" })).toEqual({ stop: ["[END"] });
  });

  it("take a JSON schema", () => {
    const format = { type: "json_schema", json_schema: { name: "answer", schema: { type: "object" } } };
    expect(openAi({ response_format: JSON.stringify(format) })).toEqual({ response_format: format });
  });

  it("refuse a param that is not known and say which are", () => {
    const error = thrown(() => openAi({ temprature: "1" }));
    expect(error).toEqual(refusal("params.temprature"));
    expect((error as Error).message).toContain("temperature, top_p, max_tokens");
    expect(thrown(() => openAi({ toString: "1" }))).toEqual(refusal("params.toString"));
    expect(thrown(() => openAi({ "no name\n": "1" }))).toEqual(refusal("params"));
  });

  it("call max_tokens by the name that the server knows", () => {
    expect(readParams({ max_tokens: "5" }, openAiParams("max_completion_tokens"))).toEqual({ max_completion_tokens: 5 });
  });
});

describe("params of the Anthropic provider", () => {
  it("become typed options", () => {
    expect(anthropic({ max_tokens: "50", stop: "END", effort: "high", thinking: "adaptive", user_id: "u-1" }).fields).toEqual({
      max_tokens: 50,
      stop_sequences: ["END"],
      output_config: { effort: "high" },
      thinking: { type: "adaptive" },
      metadata: { user_id: "u-1" },
    });
  });

  it("have a default for max_tokens, which leaves room for a thinking budget", () => {
    expect(anthropic({}).fields).toEqual({ max_tokens: 1_000 });
    expect(anthropic({ thinking_budget_tokens: "2048" }).fields).toMatchObject({ max_tokens: 3_048 });
  });

  it("keep both of what two params say of one object", () => {
    expect(anthropic({ reasoning_effort: "low", output_schema: '{"type":"object"}' }).fields.output_config).toEqual({
      effort: "low",
      format: { type: "json_schema", schema: { type: "object" } },
    });
  });

  it.each(["temperature", "top_p", "top_k"])("refuse %s, which the provider's API no longer takes", (name) => {
    expect(thrown(() => anthropic({ [name]: "1" }))).toEqual(
      refusal(`params.${name}`, "is not taken by this provider any more; leave it out"),
    );
  });

  it("refuse what contradicts itself", () => {
    expect(thrown(() => anthropic({ thinking: "disabled", thinking_budget_tokens: "2048" }))).toEqual(refusal("params.thinking"));
    expect(thrown(() => anthropic({ max_tokens: "2048", thinking_budget_tokens: "2048" }))).toEqual(refusal("params.max_tokens"));
    expect(thrown(() => anthropic({ effort: "low", reasoning_effort: "low" }))).toEqual(refusal("params.effort"));
    expect(thrown(() => anthropic({ thinking: "disabled", thinking_prefix_mismatch: "drop_block" }))).toEqual(
      refusal("params.thinking_prefix_mismatch"),
    );
    expect(thrown(() => anthropic({ thinking_budget_tokens: "10" }))).toEqual(refusal("params.thinking_budget_tokens"));
    expect(thrown(() => anthropic({ seed: "1" }))).toEqual(refusal("params.seed"));
  });
});

describe("output_schema", () => {
  const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
  const output_schema = JSON.stringify(schema);

  it("is the answer's JSON Schema with every provider", () => {
    expect(openAi({ output_schema })).toEqual({
      response_format: { type: "json_schema", json_schema: { name: "output", schema, strict: true } },
    });
    expect(readParams({ output_schema, verbosity: "low" }, RESPONSES_PARAMS)).toEqual({
      text: { format: { type: "json_schema", name: "output", schema, strict: true }, verbosity: "low" },
    });
    expect(anthropic({ output_schema }).fields.output_config).toEqual({ format: { type: "json_schema", schema } });
    expect(readGoogleParams({ output_schema, reasoning_effort: "low" })).toEqual({
      generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema, thinkingConfig: { thinkingLevel: "low" } },
    });
  });

  it.each(["", "{", "[]", '{"type":"array"}'])("is refused as %j", (text) => {
    expect(thrown(() => openAi({ output_schema: text }))).toEqual(refusal("params.output_schema"));
    expect(thrown(() => readGoogleParams({ output_schema: text }))).toEqual(refusal("params.output_schema"));
  });
});

describe("params of the Google provider", () => {
  it("name all that are known when one is not", () => {
    const error = thrown(() => readGoogleParams({ thinking: "1" }));
    expect(error).toEqual(refusal("params.thinking"));
    expect((error as Error).message).toContain("thinking_budget_tokens");
  });
});
