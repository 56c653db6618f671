import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { parseScript } from "../models/index.ts";
import { messageText, textMessage } from "../spi/index.ts";
import { replyText } from "../testing/model-answers.ts";
import { startModelServer } from "../testing/model-server.ts";
import { seededPorts } from "../testing/ports.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { DEFAULT_CONFIG, readConfig, type ServerConfig } from "./config.ts";
import { modelsConfig, NO_MODELS } from "./model-config.ts";
import { modelsOf } from "./parts.ts";

function file(name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-models-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "invalid_argument") return error.message;
    throw error;
  }
  return "";
}

const models = (config: Partial<ServerConfig>) => modelsOf({ ...DEFAULT_CONFIG, ...config }, seededPorts(), []);
const ask = (config: Partial<ServerConfig>, model: string) => {
  const provider = models(config).providerOf(model);
  if (provider === undefined) throw new Error("not served");
  return collectCompletion(provider.complete({ model, messages: [textMessage("user", "hi")] }, { signal: new AbortController().signal }));
};

describe("the models of a server", () => {
  it("are asked from the providers that the configuration gives access to, each by its own API", async () => {
    await using server = await startModelServer();
    const config = {
      openai: { baseUrl: server.openAiBaseUrl },
      anthropic: { apiKey: "k", baseUrl: server.anthropicBaseUrl },
      google: { apiKey: "k", baseUrl: server.googleBaseUrl },
      models: { ...NO_MODELS, api: [{ match: "gpt-*", value: "responses" as const }] },
    };
    for (const model of ["claude-x", "anthropic/x", "gemini-x", "google/x", "gpt-x", "llama", "echo"]) await ask(config, model);
    expect(server.requests.map(({ protocol }) => protocol)).toEqual(["anthropic", "anthropic", "google", "google", "responses", "openai"]);
  });

  it("are not served without a key or an address", () => {
    for (const model of ["claude-x", "gemini-x", "gpt-x", "script:x"]) expect(models({}).providerOf(model)).toBeUndefined();
  });

  it("fall back, cost and wait as the config file says", async () => {
    await using server = await startModelServer();
    server.script({ kind: "status", status: 401 }, replyText("openai", "hi"));
    const path = file(
      "holdfast.json",
      JSON.stringify({
        openaiBaseUrl: server.openAiBaseUrl,
        models: {
          fallbacks: { "gpt-*": ["llama"] },
          concurrency: { openai: 1 },
          prices: { llama: { input: 1, output: 2 } },
        },
      }),
    );
    const { facts, response } = await ask(readConfig({ config: path }, {}), "gpt-x");
    expect(response.usage.model).toBe("llama");
    expect(facts).toMatchObject({ model: "llama", provider: "openai", attempts: 2, costNanoDollars: 13_000 });
  });

  it("refuse a fallback that nobody serves", () => {
    const fallbacks = [{ match: "echo", value: ["echo", "gpt-x"] }];
    expect(refusal(() => models({ models: { ...NO_MODELS, fallbacks } }))).toBe(
      "models.fallbacks.echo: must be models that this host serves",
    );
  });

  it("play the script that the operator names, and no other", async () => {
    const model = `script:${file("demo.yaml", "completions:\n  - text: as written")}`;
    const config = { defaults: { harness: "chat", model } };
    expect(messageText((await ask(config, model)).response.message)).toBe("as written");
    expect(models(config).providerOf("script:/etc/hostname")).toBeUndefined();
  });

  it("refuse a script that cannot be read or is none, without its path", () => {
    const withScript = (path: string) => refusal(() => models({ defaults: { harness: "chat", model: `script:${path}` } }));
    expect(withScript("/nowhere.yaml")).toBe("model: must name a script that can be read, after script:");
    expect(withScript(file("bad.yaml", "completions:\n  - txt: hi"))).toMatch(/^script\.completions\[0\]\.txt: is no key here/);
  });
});

describe("what the config file says of models", () => {
  const read = (value: unknown) => modelsConfig({ at: "models", value });

  it.each([
    [{ apis: {} }, /^models\.apis: is no key here; there are: api, fallbacks, concurrency, prices$/],
    [{ api: { "gpt-*": "completions" } }, /^models\.api\."gpt-\*": must be responses or chat$/],
    [{ api: { "*": "chat" } }, /^models\.api\."\*": must be a model's id/],
    [{ fallbacks: { a: "b" } }, /^models\.fallbacks\.a: must be a list of texts$/],
    [{ fallbacks: { a: [] } }, /^models\.fallbacks\.a: must have one text at least$/],
    [{ concurrency: { azure: 1 } }, /^models\.concurrency\.azure: is no key here/],
    [{ concurrency: { openai: 0 } }, /^models\.concurrency\.openai: must be a whole number from 1/],
    [{ prices: { a: { input: 1 } } }, /^models\.prices\.a\.output: must be there$/],
    [{ prices: { a: { input: "1", output: 1 } } }, /^models\.prices\.a\.input: must be a number/],
    [{ prices: { a: { input: 1, output: -1 } } }, /^models\.prices\.a\.output: must be dollars a million tokens/],
    [{ prices: { a: { input: 1, output: 1, cached: 1 } } }, /^models\.prices\.a\.cached: is no key here/],
  ])("is refused by the path of the key: %j", (value, message) => {
    expect(refusal(() => read(value))).toMatch(message);
  });
});

describe("the page on models", () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "models.md"), "utf8");
  const blocks = (language: string) =>
    [...page.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, "g"))].map(([, text]) => text ?? "");

  it("has a script that is one, and a config file that is one", () => {
    expect(parseScript(blocks("yaml")[0] ?? "").completions.length).toBeGreaterThan(3);
    const path = file("holdfast.json", blocks("json")[0] ?? "");
    expect(readConfig({ config: path }, {}).models).not.toEqual(NO_MODELS);
  });
});
