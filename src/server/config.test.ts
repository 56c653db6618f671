import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { TEST_CERT, TEST_KEY } from "../../e2e/support/certificate.ts";
import { newKeyPair, signerOf } from "../node/index.ts";
import { DEFAULT_CONFIG, readConfig, type Environment, type Flags } from "./config.ts";
import { NO_MODELS } from "./model-config.ts";
import { NO_APPROVALS } from "./policy-config.ts";
import { SETTINGS, type Setting } from "./settings.ts";

/** The message with which a configuration is refused; undefined when it is taken. */
function refusal(flags: Flags, env: Environment = {}): string | undefined {
  try {
    readConfig(flags, env);
    return undefined;
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe("invalid_argument");
    expect(error.message.startsWith(`${error.field}: `)).toBe(true);
    return error.message;
  }
}

function fileWith(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-config-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "file");
  writeFileSync(path, text);
  return path;
}

describe("a server's configuration", () => {
  it("is complete when nobody says anything", () => {
    expect(DEFAULT_CONFIG).toEqual({
      listen: { host: "127.0.0.1", port: 8080 },
      store: { kind: "sqlite", folder: "./.holdfast" },
      defaults: { harness: "echo", model: "echo" },
      tls: undefined,
      token: undefined,
      signer: undefined,
      openai: undefined,
      google: undefined,
      models: NO_MODELS,
      anthropic: undefined,
      recover: "leave",
      retentionMs: 30 * 86_400_000,
      shutdownGraceMs: 30_000,
      logLevel: "info",
      harnesses: {},
      agents: {},
      environments: {},
      tools: { servers: {} },
      policies: [],
      approvals: NO_APPROVALS,
      budgets: undefined,
      registry: { listen: "beside", token: undefined },
      pauseAfterIdleMs: undefined,
      suspendAfterIdleMs: undefined,
      tokens: undefined,
      hiddenFiles: [],
    });
  });

  it("takes a flag before a variable, and a variable before the default", () => {
    const env = { HOLDFAST_LISTEN: "127.0.0.1:1", HOLDFAST_DATA: "/env" };
    expect(readConfig({ listen: "127.0.0.1:2" }, env)).toMatchObject({ listen: { port: 2 }, store: { folder: "/env" } });
  });

  it("takes an empty value for none", () => {
    expect(readConfig({ data: "" }, { HOLDFAST_DATA: " ", HOLDFAST_TOKEN: "", OPENAI_API_KEY: "" })).toEqual(DEFAULT_CONFIG);
  });

  it("reads every setting", () => {
    const pair = newKeyPair();
    const key = fileWith(TEST_KEY);
    const cert = fileWith(TEST_CERT);
    const env = {
      HOLDFAST_LISTEN: "[::1]:0",
      HOLDFAST_STORE: "memory",
      HOLDFAST_HARNESS: "chat",
      HOLDFAST_MODEL: "gpt-x",
      HOLDFAST_TLS_CERT: cert,
      HOLDFAST_TLS_KEY: key,
      HOLDFAST_SHUTDOWN_GRACE: "0.5",
      HOLDFAST_LOG_LEVEL: "debug",
      HOLDFAST_TOKEN_FILE: fileWith("sesame\n"),
      OPENAI_API_KEY: "k1",
      OPENAI_BASE_URL: "http://127.0.0.1:1/v1",
      ANTHROPIC_API_KEY: "k2",
      ANTHROPIC_BASE_URL: "http://127.0.0.1:2",
      HOLDFAST_OPENAI_API: "responses",
      GEMINI_API_KEY: "k3",
      GOOGLE_GEMINI_BASE_URL: "http://127.0.0.1:3",
      HOLDFAST_RECOVER: "resume",
      HOLDFAST_RETENTION: "12h",
      HOLDFAST_SIGNING_KEY_FILE: fileWith(pair.privatePem),
      HOLDFAST_REGISTRY_LISTEN: "127.0.0.1:7",
      HOLDFAST_OPERATOR_TOKEN_FILE: fileWith("open\n"),
      HOLDFAST_PAUSE_AFTER_IDLE_MS: "60000",
      HOLDFAST_SUSPEND_AFTER_IDLE_MS: "3600000",
      HOLDFAST_MINT_KEY_FILE: fileWith(pair.privatePem),
      HOLDFAST_MINT_ISSUER: "https://holdfast.example",
      HOLDFAST_MINT_LIFETIME_SECONDS: "60",
      HOLDFAST_CONFIG: fileWith('{"harnesses":{"coder":{"runtime":"remote","address":"127.0.0.1:7000"}}}'),
    };
    const signer = { publicKey: signerOf(pair.privatePem, "key").publicKey, sign: expect.any(Function) as () => Promise<Uint8Array> };
    expect(readConfig({}, env)).toEqual({
      listen: { host: "::1", port: 0 },
      store: { kind: "memory" },
      defaults: { harness: "chat", model: "gpt-x" },
      tls: { key: TEST_KEY, cert: TEST_CERT },
      token: "sesame",
      signer,
      openai: { apiKey: "k1", baseUrl: "http://127.0.0.1:1/v1", api: "responses" },
      anthropic: { apiKey: "k2", baseUrl: "http://127.0.0.1:2" },
      google: { apiKey: "k3", baseUrl: "http://127.0.0.1:3" },
      models: NO_MODELS,
      recover: "resume",
      retentionMs: 12 * 3_600_000,
      shutdownGraceMs: 500,
      logLevel: "debug",
      harnesses: { coder: { runtime: "remote", address: "127.0.0.1:7000" } },
      agents: {},
      environments: {},
      tools: { servers: {} },
      policies: [],
      approvals: NO_APPROVALS,
      budgets: undefined,
      registry: { listen: { host: "127.0.0.1", port: 7 }, token: "open" },
      pauseAfterIdleMs: 60_000,
      suspendAfterIdleMs: 3_600_000,
      tokens: { signer, issuer: "https://holdfast.example", lifetimeMs: 60_000 },
      hiddenFiles: [
        env.HOLDFAST_CONFIG,
        env.HOLDFAST_TOKEN_FILE,
        env.HOLDFAST_OPERATOR_TOKEN_FILE,
        env.HOLDFAST_SIGNING_KEY_FILE,
        env.HOLDFAST_MINT_KEY_FILE,
        key,
      ],
    });
    expect(readConfig({ registryListen: "off" }, env).registry.listen).toBe("off");
    expect(readConfig({}, { ...env, HOLDFAST_TOKEN: "direct" }).token).toBe("direct");
    expect(readConfig({}, { OPENAI_BASE_URL: "http://127.0.0.1:1/v1" }).openai).toEqual({ baseUrl: "http://127.0.0.1:1/v1" });
  });

  it("takes no API of OpenAI's that there is not", () => {
    expect(refusal({}, { OPENAI_API_KEY: "k", HOLDFAST_OPENAI_API: "completions" })).toBe("HOLDFAST_OPENAI_API: must be responses or chat");
  });

  it("keeps deleted sessions for a time, not at all, or for ever", () => {
    const retentionMs = (retention: string) => readConfig({ retention }, {}).retentionMs;
    expect(["0", "0s", "90s", "15m", "36500d"].map(retentionMs)).toEqual([0, 0, 90_000, 900_000, 36_500 * 86_400_000]);
    expect(retentionMs("forever")).toBeUndefined();
  });

  it("is refused by the name under which the wrong value was given", () => {
    expect(refusal({ listen: "8080" })).toMatch(/^--listen: must be host:port/);
    expect(refusal({}, { HOLDFAST_LISTEN: "8080" })).toMatch(/^HOLDFAST_LISTEN: must be host:port/);
    for (const listen of ["", ":", "host", "host:", ":80", "host:65536", "host:-1", "::1:80", "[::1]", "a b:80", "host:80:80"]) {
      expect(refusal({ listen }) === undefined).toBe(listen === "");
    }
    expect(refusal({ store: "postgres" })).toBe("--store: must be sqlite or memory");
    expect(refusal({}, { HOLDFAST_LOG_LEVEL: "loud" })).toBe("HOLDFAST_LOG_LEVEL: must be debug, info, warn or error");
    for (const seconds of ["-1", "x", "86401", "Infinity", "NaN"]) {
      expect(refusal({ shutdownGrace: seconds })).toBe("--shutdown-grace: must be seconds from 0 to 86400");
    }
    for (const retention of ["-1", "1", "d", "1.5d", "never", "36501d", "1w"]) {
      expect(refusal({ retention })).toMatch(/^--retention: must be a number and a unit/);
    }
    expect(refusal({ registryListen: "8081" })).toMatch(/^--registry-listen: must be host:port/);
    for (const idle of ["0", "-1", "1.5", "soon", "2073600001"]) {
      expect(refusal({}, { HOLDFAST_PAUSE_AFTER_IDLE_MS: idle })).toBe(
        "HOLDFAST_PAUSE_AFTER_IDLE_MS: must be a whole number from 1 to 2073600000",
      );
    }
    expect(refusal({}, { HOLDFAST_MINT_LIFETIME_SECONDS: "3601" })).toMatch(/^HOLDFAST_MINT_LIFETIME_SECONDS: /);
    expect(refusal({}, { HOLDFAST_MINT_ISSUER: "x" })).toBe("HOLDFAST_MINT_KEY_FILE: must be given with the issuer");
    expect(refusal({}, { HOLDFAST_MINT_KEY_FILE: "/key" })).toBe("HOLDFAST_MINT_ISSUER: must be given with the key");
    expect(refusal({ tlsCert: "/cert" })).toBe("HOLDFAST_TLS_KEY: must be given with the certificate");
    expect(refusal({ tlsKey: "/key" })).toBe("HOLDFAST_TLS_CERT: must be given with the key");
    expect(refusal({ tlsKey: "/nowhere", tlsCert: "/nowhere" })).toBe("--tls-cert: must name a file that can be read");
  });

  it("is refused when the files for TLS hold something else, by the name of the wrong one", () => {
    const [tlsCert, tlsKey, other] = [fileWith(TEST_CERT), fileWith(TEST_KEY), fileWith("no PEM")];
    const strangersKey = fileWith(newKeyPair().privatePem);
    expect(refusal({ tlsCert, tlsKey })).toBeUndefined();
    expect(refusal({ tlsCert: other, tlsKey })).toBe("--tls-cert: must name a file with a certificate chain in PEM");
    expect(refusal({ tlsCert: tlsKey, tlsKey })).toBe("--tls-cert: must name a file with a certificate chain in PEM");
    expect(refusal({ tlsCert, tlsKey: other })).toBe("--tls-key: must name a file with a private key in PEM that is not encrypted");
    expect(refusal({ tlsCert }, { HOLDFAST_TLS_KEY: strangersKey })).toBe("HOLDFAST_TLS_KEY: must be the private key of the certificate");
  });

  it("never repeats a secret, and takes no token that a header cannot hold", () => {
    for (const token of ["two words", "é", "a\u0000b"]) {
      expect(refusal({}, { HOLDFAST_TOKEN: token })).toBe(
        "HOLDFAST_TOKEN: must hold a token of visible ASCII characters without white space",
      );
      expect(refusal({}, { HOLDFAST_TOKEN_FILE: fileWith(token) })).toMatch(/^HOLDFAST_TOKEN_FILE: must hold a token/);
    }
    expect(refusal({}, { HOLDFAST_TOKEN_FILE: fileWith("") })).toMatch(/^HOLDFAST_TOKEN_FILE: must hold a token/);
    expect(refusal({}, { HOLDFAST_TOKEN_FILE: "/nowhere" })).toBe("HOLDFAST_TOKEN_FILE: must name a file that can be read");
    expect(refusal({}, { HOLDFAST_SIGNING_KEY_FILE: fileWith("secret") })).toBe(
      "HOLDFAST_SIGNING_KEY_FILE: must hold one Ed25519 private key in PEM (PKCS#8)",
    );
    expect(refusal({}, { HOLDFAST_MINT_KEY_FILE: fileWith("secret"), HOLDFAST_MINT_ISSUER: "x" })).toBe(
      "HOLDFAST_MINT_KEY_FILE: must hold one Ed25519 private key in PEM (PKCS#8)",
    );
    expect(refusal({}, { HOLDFAST_OPERATOR_TOKEN: "two words" })).toMatch(/^HOLDFAST_OPERATOR_TOKEN: must hold a token/);
  });
});

describe("the table of settings", () => {
  const settings: readonly Setting[] = Object.values(SETTINGS);

  it("names every flag and every variable once", () => {
    const flags = settings.flatMap(({ flag }) => (flag === undefined ? [] : [flag]));
    expect(new Set(flags).size).toBe(flags.length);
    expect(new Set(settings.map(({ env }) => env)).size).toBe(settings.length);
  });

  it("lets no secret stand in an argument, where every process can read it, nor in the config file", () => {
    for (const { env, flag, file } of settings) {
      if (/TOKEN|API_KEY|SIGNING|MINT_KEY/.test(env)) expect(flag).toBeUndefined();
      if (/TOKEN$|API_KEY$/.test(env)) expect(file).toBeUndefined();
    }
  });

  it("names every key of the config file once", () => {
    const keys = settings.flatMap(({ file }) => (file === undefined ? [] : [file]));
    expect(new Set(keys).size).toBe(keys.length);
  });
});
