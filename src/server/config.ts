/** A server's configuration, and how flags and environment become one. Pure but for the files that they name. */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { invalidArgument, type HoldfastError, type Signer } from "../base/index.ts";
import { signerOf, type LogLevel } from "../node/index.ts";
import { SETTINGS, type Setting, type SettingName } from "./settings.ts";

/** How a server is to run. */
export interface ServerConfig {
  /** An IPv6 host stands here without brackets. */
  readonly listen: { readonly host: string; readonly port: number };
  /** `memory` forgets everything at the end. */
  readonly store: { readonly kind: "sqlite"; readonly folder: string } | { readonly kind: "memory" };
  /** What sessions have whose creator names no harness or model. */
  readonly defaults: { readonly harness: string; readonly model: string };
  /** Key and certificate chain in PEM; undefined for cleartext. */
  readonly tls: { readonly key: string; readonly cert: string } | undefined;
  /** What every call must carry; undefined lets everybody in who reaches the port. */
  readonly token: string | undefined;
  /** Signs the heads of sessions; undefined for no signatures. */
  readonly signer: Signer | undefined;
  /** The OpenAI-compatible API that serves what no other provider does; undefined for none. */
  readonly openai: { readonly apiKey?: string | undefined; readonly baseUrl?: string | undefined } | undefined;
  /** The Anthropic API; undefined for none. */
  readonly anthropic: { readonly apiKey: string; readonly baseUrl?: string | undefined } | undefined;
  /** What becomes of turns that an earlier start left open. */
  readonly recover: "leave" | "resume";
  /** How long deleted sessions are kept; undefined keeps them for ever. */
  readonly retentionMs: number | undefined;
  readonly shutdownGraceMs: number;
  readonly logLevel: LogLevel;
}

/** Values of flags by the names of their settings; undefined where a flag was not given. */
export type Flags = { readonly [Name in SettingName]?: string | undefined };
/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

const GRACE_SECONDS_MAX = 24 * 60 * 60;
const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/**
 * The configuration in flags and environment; a flag goes before a variable, an empty value counts as none. Throws
 * INVALID_ARGUMENT that names the flag or the variable. A secret is never repeated.
 */
export function readConfig(flags: Flags, env: Environment): ServerConfig {
  const values = new Values(flags, env);
  return {
    listen: listenOf(values),
    store: storeOf(values),
    defaults: { harness: values.text("harness"), model: values.text("model") },
    tls: tlsOf(values),
    token: tokenOf(values),
    signer: configuredSigner(values),
    openai: openaiOf(values),
    anthropic: anthropicOf(values),
    recover: values.oneOf("recover", ["leave", "resume"]),
    retentionMs: retentionMsOf(values),
    shutdownGraceMs: graceMsOf(values),
    logLevel: values.oneOf("logLevel", LOG_LEVELS),
  };
}

/** The given values of settings, each with the name under which it was given. */
class Values {
  readonly #flags: Flags;
  readonly #env: Environment;

  constructor(flags: Flags, env: Environment) {
    this.#flags = flags;
    this.#env = env;
  }

  given(name: SettingName): string | undefined {
    return filled(this.#flags[name]) ?? filled(this.#env[SETTINGS[name].env]);
  }

  /** The given value, or the default. */
  text(name: SettingName): string {
    const setting: Setting = SETTINGS[name];
    return this.given(name) ?? setting.default ?? "";
  }

  oneOf<Choice extends string>(name: SettingName, choices: readonly Choice[]): Choice {
    const choice = choices.find((candidate) => candidate === this.text(name));
    if (choice === undefined) throw this.wrong(name, `must be ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`);
    return choice;
  }

  /** The text of the file that a setting names. */
  file(name: SettingName, path: string): string {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      throw this.wrong(name, "must name a file that can be read", error);
    }
  }

  /** An error that names the setting as it was given. */
  wrong(name: SettingName, message: string, cause?: unknown): HoldfastError {
    const setting: Setting = SETTINGS[name];
    const byFlag = setting.flag !== undefined && filled(this.#flags[name]) !== undefined;
    return invalidArgument(byFlag ? `--${setting.flag}` : setting.env, message, { cause });
  }
}

function filled(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === "" ? undefined : value.trim();
}

function listenOf(values: Values): ServerConfig["listen"] {
  const match = /^(?:\[(?<six>[0-9a-fA-F:.%]+)\]|(?<four>[^:[\]/\s]+)):(?<port>\d{1,5})$/.exec(values.text("listen"));
  const host = match?.groups?.["six"] ?? match?.groups?.["four"];
  const port = Number(match?.groups?.["port"]);
  if (host === undefined || port > 65_535) {
    throw values.wrong("listen", "must be host:port, such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:443");
  }
  return { host, port };
}

function storeOf(values: Values): ServerConfig["store"] {
  const kind = values.oneOf("store", ["sqlite", "memory"]);
  return kind === "memory" ? { kind } : { kind, folder: values.text("data") };
}

function tlsOf(values: Values): ServerConfig["tls"] {
  const cert = values.given("tlsCert");
  const key = values.given("tlsKey");
  if (cert === undefined && key === undefined) return undefined;
  if (cert === undefined) throw values.wrong("tlsCert", "must be given with the key");
  if (key === undefined) throw values.wrong("tlsKey", "must be given with the certificate");
  const tls = { cert: values.file("tlsCert", cert), key: values.file("tlsKey", key) };
  mustBeUsable(values, "tlsCert", { cert: tls.cert }, "must name a file with a certificate chain in PEM");
  mustBeUsable(values, "tlsKey", { key: tls.key }, "must name a file with a private key in PEM that is not encrypted");
  // The certificate of the chain that is the server's own comes first. TLS itself would take a key of another kind.
  if (!new X509Certificate(tls.cert).checkPrivateKey(createPrivateKey(tls.key))) {
    throw values.wrong("tlsKey", "must be the private key of the certificate");
  }
  return tls;
}

/** Asks TLS itself, which would otherwise refuse only when the port is opened, without saying which file is wrong. */
function mustBeUsable(values: Values, name: SettingName, options: SecureContextOptions, message: string): void {
  try {
    createSecureContext(options);
  } catch (error) {
    throw values.wrong(name, message, error);
  }
}

function tokenOf(values: Values): string | undefined {
  const direct = values.given("token");
  if (direct !== undefined) return checkedToken(values, "token", direct);
  const path = values.given("tokenFile");
  return path === undefined ? undefined : checkedToken(values, "tokenFile", values.file("tokenFile", path).trim());
}

/** The key is read once and kept by nobody but the signer. */
function configuredSigner(values: Values): Signer | undefined {
  const path = values.given("signingKeyFile");
  return path === undefined ? undefined : signerOf(values.file("signingKeyFile", path), SETTINGS.signingKeyFile.env);
}

function checkedToken(values: Values, name: SettingName, token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw values.wrong(name, "must hold a token of visible ASCII characters without white space");
}

function openaiOf(values: Values): ServerConfig["openai"] {
  const apiKey = values.given("openaiApiKey");
  const baseUrl = values.given("openaiBaseUrl");
  return apiKey === undefined && baseUrl === undefined ? undefined : { apiKey, baseUrl };
}

function anthropicOf(values: Values): ServerConfig["anthropic"] {
  const apiKey = values.given("anthropicApiKey");
  return apiKey === undefined ? undefined : { apiKey, baseUrl: values.given("anthropicBaseUrl") };
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const RETENTION_DAYS_MAX = 36_500;

function retentionMsOf(values: Values): number | undefined {
  const text = values.text("retention");
  if (text === "forever") return undefined;
  if (text === "0") return 0;
  const match = /^(\d{1,9})([smhd])$/.exec(text);
  const retentionMs = Number(match?.[1]) * (UNIT_MS[match?.[2] ?? ""] ?? Number.NaN);
  if (!(retentionMs <= RETENTION_DAYS_MAX * 86_400_000)) {
    throw values.wrong("retention", `must be a number and a unit (90s, 15m, 12h, 30d) of at most ${RETENTION_DAYS_MAX}d, 0 or forever`);
  }
  return retentionMs;
}

function graceMsOf(values: Values): number {
  const seconds = Number(values.text("shutdownGrace"));
  if (!(seconds >= 0 && seconds <= GRACE_SECONDS_MAX)) {
    throw values.wrong("shutdownGrace", `must be seconds from 0 to ${GRACE_SECONDS_MAX}`);
  }
  return Math.round(seconds * 1000);
}

/** What a server runs with when nobody says anything. */
export const DEFAULT_CONFIG: ServerConfig = readConfig({}, {});
