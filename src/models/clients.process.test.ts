/** What the vendors' client libraries do to the host's process; looked at from outside, in a process of its own. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startModelServer, type ModelReply } from "../testing/model-server.ts";
import { sse } from "../testing/model-streams.ts";

const run = promisify(execFile);

/** Runs `code` with the exports of `models/` in a process of its own; returns all that the process wrote. */
async function written(code: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const program = `
    import { registerHooks } from "node:module";
    const loaded = new Set();
    registerHooks({
      resolve(specifier, context, next) {
        if (!/^[./]|^(node|file|data):/.test(specifier)) loaded.add(specifier);
        return next(specifier, context);
      },
    });
    const models = await import(${JSON.stringify(new URL("./index.ts", import.meta.url).href)});
    const clock = { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => {}, after: () => ({ cancel() {} }) };
    const options = { apiKey: "k", clock, random: { bytes: (count) => new Uint8Array(count) } };
    const signal = new AbortController().signal;
    const messages = [{ role: "user", parts: [{ part: { case: "text", value: { text: "hello" } } }] }];
    const complete = async (provider, request) => {
      try {
        for await (const chunk of provider.complete({ messages, ...request }, { signal }));
        return "completed";
      } catch (error) {
        return error.code;
      }
    };
    ${code}
  `;
  const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "--eval", program], { env: { ...process.env, ...env } });
  return stdout + stderr;
}

describe("the vendors' client libraries", () => {
  const loaded = async (code: string): Promise<string[]> =>
    JSON.parse(await written(`${code}; console.log(JSON.stringify([...loaded]));`)) as string[];

  it("are not loaded by a host that makes all providers and calls none of them", async () => {
    const packages = await loaded(
      "models.createEchoProvider(); models.createOpenAiProvider(options); models.createAnthropicProvider(options)",
    );
    expect(packages).toContain("@bufbuild/protobuf");
    expect(packages.filter((name) => /openai|anthropic/.test(name))).toEqual([]);
  });

  it("are loaded by the first call, each its own only", async () => {
    const packages = await loaded(`
      const provider = models.createOpenAiProvider({ ...options, baseUrl: "http://127.0.0.1:1", limits: { attemptsMax: 1 } });
      await complete(provider, { model: "m" })
    `);
    expect(packages).toContain("openai");
    expect(packages.filter((name) => name.includes("anthropic"))).toEqual([]);
  });

  it("write nothing, whatever the provider sends, the model is called and the environment asks for", async () => {
    await using server = await startModelServer();
    const refused: ModelReply = { kind: "status", status: 400, body: '{"error":{"message":"secret words"}}' };
    const broken: ModelReply = { kind: "stream", steps: [sse("{secret words", "message_start")] };
    server.script(refused, broken, refused, broken);
    const output = await written(
      `
      const limits = { attemptsMax: 1 };
      const openAi = models.createOpenAiProvider({ ...options, limits, baseUrl: ${JSON.stringify(server.openAiBaseUrl)} });
      const anthropic = models.createAnthropicProvider({ ...options, limits, baseUrl: ${JSON.stringify(server.anthropicBaseUrl)} });
      const codes = [];
      for (const provider of [openAi, anthropic]) {
        for (let call = 0; call < 2; call++) codes.push(await complete(provider, { model: "m" }));
      }
      codes.push(await complete(anthropic, { model: "claude-opus-4-5" }));
      codes.push(await complete(anthropic, { model: "claude-opus-4-6", params: { thinking_budget_tokens: "2048" } }));
      console.log(codes.join());
      `,
      { OPENAI_LOG: "debug", ANTHROPIC_LOG: "debug" },
    );
    expect(output).toBe("invalid_argument,unavailable,invalid_argument,unavailable,completed,completed\n");
  });
});
