import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { newKeyPair } from "../node/index.ts";
import { CONFIG_BYTES_MAX } from "./config-file.ts";
import { DEFAULT_CONFIG, readConfig, type Environment, type ServerConfig } from "./config.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

function write(text: string, folder = newFolder()): string {
  const path = join(folder, "holdfast.json");
  writeFileSync(path, text);
  return path;
}

const read = (value: unknown, env: Environment = {}): ServerConfig => readConfig({ config: write(JSON.stringify(value)) }, env);

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe("invalid_argument");
    expect(error.message.startsWith(`${error.field}: `)).toBe(true);
    expect(error.message).not.toContain(tmpdir());
    return error.message;
  }
  return "";
}

describe("a config file", () => {
  it("has the settings by their keys, numbers as numbers, and paths from its own folder", () => {
    const folder = newFolder();
    const pair = newKeyPair();
    mkdirSync(join(folder, "keys"));
    for (const name of ["sign.pem", "mint.pem"]) writeFileSync(join(folder, "keys", name), pair.privatePem);
    writeFileSync(join(folder, "operator"), "open\n");
    const file = {
      listen: "127.0.0.1:9000",
      data: "data",
      harness: "chat",
      model: "gpt-x",
      recover: "resume",
      retention: "12h",
      shutdownGrace: 0.5,
      logLevel: "warn",
      signingKeyFile: "keys/sign.pem",
      openaiBaseUrl: "http://127.0.0.1:1/v1",
      registry: { listen: "127.0.0.1:9001", tokenFile: "operator" },
      pauseAfterIdleMs: 1_000,
      suspendAfterIdleMs: 2_000,
      tokens: { keyFile: "keys/mint.pem", issuer: "here", lifetimeSeconds: 60 },
    };
    expect(readConfig({ config: write(JSON.stringify(file), folder) }, {})).toMatchObject({
      listen: { host: "127.0.0.1", port: 9000 },
      store: { kind: "sqlite", folder: join(folder, "data") },
      defaults: { harness: "chat", model: "gpt-x" },
      recover: "resume",
      retentionMs: 12 * 3_600_000,
      shutdownGraceMs: 500,
      logLevel: "warn",
      signer: expect.anything() as unknown,
      openai: { baseUrl: "http://127.0.0.1:1/v1" },
      registry: { listen: { host: "127.0.0.1", port: 9001 }, token: "open" },
      pauseAfterIdleMs: 1_000,
      suspendAfterIdleMs: 2_000,
      tokens: { issuer: "here", lifetimeMs: 60_000 },
    });
  });

  it("comes after flags and variables, and an empty one changes nothing", () => {
    const config = write(JSON.stringify({ model: "file", harness: "file", logLevel: "debug" }));
    const env = { HOLDFAST_CONFIG: config, HOLDFAST_HARNESS: "variable", HOLDFAST_MODEL: "variable" };
    expect(readConfig({ model: "flag" }, env)).toMatchObject({ defaults: { model: "flag", harness: "variable" }, logLevel: "debug" });
    const { hiddenFiles, ...changed } = read({});
    expect({ ...changed, hiddenFiles: [] }).toEqual(DEFAULT_CONFIG);
    expect(hiddenFiles).toEqual([expect.stringMatching(/holdfast\.json$/)]);
    expect(readConfig({ config: "" }, {})).toEqual(DEFAULT_CONFIG);
  });

  it.each([
    [
      { lisen: "x" },
      /^lisen: is no key here; there are: listen, data, .*harnesses, agents, environments, models, tools, spawn, policies, approvals, budgets$/,
    ],
    [{ registry: { port: 1 } }, /^registry\.port: is no key here; there are: listen, tokenFile$/],
    [{ registry: [] }, /^registry: must be an object$/],
    [{ "a b\n": 1 }, /^"a b\\n": is no key here/],
    [{ ["__proto__x"]: 1 }, /^__proto__x: is no key here/],
    [{ listen: 8080 }, /^listen: must be a text$/],
    [{ listen: "8080" }, /^listen: must be host:port/],
    [{ shutdownGrace: "30" }, /^shutdownGrace: must be a number$/],
    [{ shutdownGrace: -1 }, /^shutdownGrace: must be seconds from 0/],
    [{ pauseAfterIdleMs: 1.5 }, /^pauseAfterIdleMs: must be a whole number/],
    [{ registry: { listen: "nowhere" } }, /^registry\.listen: must be host:port/],
    [{ tokens: { issuer: "x" } }, /^HOLDFAST_MINT_KEY_FILE: must be given with the issuer$/],
    [{ tokens: { keyFile: "nowhere", issuer: "x" } }, /^tokens\.keyFile: must name a file that can be read$/],
    [{ config: "other.json" }, /^config: must not stand in the config file/],
    [[], /^config: must be an object of settings$/],
    [null, /^config: must be an object of settings$/],
  ])("is refused by the path of the key: %j", (value, message) => {
    expect(refusal(() => read(value))).toMatch(message);
  });

  it("refuses an own key that is called __proto__", () => {
    expect(refusal(() => readConfig({ config: write('{"__proto__": {"listen": "x"}}') }, {}))).toMatch(/^__proto__: is no key here/);
  });

  it.each(["token", "operatorToken", "openaiApiKey", "anthropicApiKey", "googleApiKey"])("holds no secret: %s", (key) => {
    const message = refusal(() => read({ [key]: "hunter2" }));
    expect(message).toMatch(new RegExp(`^${key}: must not stand in the config file; set [A-Z_]+$`));
  });

  it("is refused by the name that gave it when it cannot be read, is no JSON or is too large, and is not quoted", () => {
    expect(refusal(() => readConfig({ config: "/nowhere" }, {}))).toBe("--config: must name a file that can be read");
    expect(refusal(() => readConfig({}, { HOLDFAST_CONFIG: newFolder() }))).toBe("HOLDFAST_CONFIG: must name a file that can be read");
    const text = (json: string) => refusal(() => readConfig({ config: write(json) }, {}));
    expect(text('{\n  "token": hunter2\n}')).toBe("--config: must name a file of JSON, without comments; this one is none");
    expect(text('{\n  "data": "a" // here\n}')).toMatch(/this one is none \(line 2 column \d+\)$/);
    const large = write(`"${"x".repeat(CONFIG_BYTES_MAX)}"`);
    expect(refusal(() => readConfig({ config: large }, {}))).toMatch(/^--config: must name a file of at most/);
  });
});
