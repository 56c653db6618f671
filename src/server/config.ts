/** A server's configuration, and how flags, environment and config file become one. Pure but for the files that they name. */

import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { invalidArgument, type HoldfastError, type Signer } from "../base/index.ts";
import type { BudgetConfig, PolicyRule } from "../controller/index.ts";
import type { AgentDefinition } from "../harnesses/index.ts";
import { signerOf, type LogLevel } from "../node/index.ts";
import { agentConfigs } from "./agent-config.ts";
import { readConfigFile, type ConfigFile } from "./config-file.ts";
import { budgetsConfig } from "./budget-config.ts";
import { spanMsOf } from "./config-value.ts";
import { environmentConfigs, type EnvironmentDefinition } from "./environment-config.ts";
import { harnessConfigs, type HarnessConfig } from "./harness-config.ts";
import type { OpenAiApi } from "../models/index.ts";
import { modelsConfig, type ModelsConfig } from "./model-config.ts";
import { approvalsConfig, policiesConfig, type ApprovalsConfig } from "./policy-config.ts";
import { SETTINGS, type Setting, type SettingName } from "./settings.ts";
import { spawnConfig, type SpawnConfig } from "./spawn-config.ts";
import { toolsConfig, type ToolsConfig } from "./tool-config.ts";

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
  readonly openai:
    | { readonly apiKey?: string | undefined; readonly baseUrl?: string | undefined; readonly api?: OpenAiApi | undefined }
    | undefined;
  /** The Anthropic API; undefined for none. */
  readonly anthropic: { readonly apiKey: string; readonly baseUrl?: string | undefined } | undefined;
  /** The Gemini API; undefined for none. */
  readonly google: { readonly apiKey: string; readonly baseUrl?: string | undefined } | undefined;
  /** What the config file says of models. */
  readonly models: ModelsConfig;
  /** What becomes of turns that an earlier start left open. */
  readonly recover: "leave" | "resume";
  /** How long deleted sessions are kept; undefined keeps them for ever. */
  readonly retentionMs: number | undefined;
  readonly shutdownGraceMs: number;
  readonly logLevel: LogLevel;
  /** The harnesses of the config file, by name; they are STATIC. */
  readonly harnesses: Readonly<Record<string, HarnessConfig>>;
  /** Agents by name; each is a STATIC harness of that name. */
  readonly agents: Readonly<Record<string, AgentDefinition>>;
  /** Environments by their ids; `default` is there without it. */
  readonly environments: Readonly<Record<string, EnvironmentDefinition>>;
  /** What the config file says of tools. */
  readonly tools: ToolsConfig;
  /** What sessions may spawn; undefined for nothing. */
  readonly spawn: SpawnConfig | undefined;
  /** The host's own word on tool calls: the first rule that matches. */
  readonly policies: readonly PolicyRule[];
  readonly approvals: ApprovalsConfig;
  /** How much may be spent; undefined for anything. */
  readonly budgets: BudgetConfig | undefined;
  /** The operator's port. `beside` is 127.0.0.1 and the port after the server's own; without a token it must be loopback. */
  readonly registry: {
    readonly listen: { readonly host: string; readonly port: number } | "beside" | "off";
    readonly token: string | undefined;
  };
  /** After how long without a turn a session's sandbox is paused; undefined for never. */
  readonly pauseAfterIdleMs: number | undefined;
  /** After how long without a turn a session's sandbox is suspended and its compute freed; undefined for never. */
  readonly suspendAfterIdleMs: number | undefined;
  /** Signs the tokens that harnesses mint; undefined where they mint none. */
  readonly tokens: { readonly signer: Signer; readonly issuer: string; readonly lifetimeMs: number } | undefined;
  /** The config file and those that secrets were read from, absolute: a confined harness does not see them, wherever they lie. */
  readonly hiddenFiles: readonly string[];
}

/** Values of flags by the names of their settings; undefined where a flag was not given. */
export type Flags = { readonly [Name in SettingName]?: string | undefined };
/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

const GRACE_SECONDS_MAX = 24 * 60 * 60;
/** What a timer of Node can count to is a little more. */
const IDLE_MS_MAX = 24 * 86_400_000;
const MINT_SECONDS_MAX = 3_600;
const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/**
 * The configuration in flags, environment and config file; a flag goes before a variable, and a variable before the file. An empty
 * value counts as none. Throws INVALID_ARGUMENT that names the flag, the variable or the file's key. A secret is never repeated.
 */
export function readConfig(flags: Flags, env: Environment): ServerConfig {
  const values = valuesOf(flags, env);
  const secretFiles = new Set(SECRET_FILES.flatMap((name) => pathsOf(values, name)));
  const around = { folder: values.file?.folder ?? "", env, secretFiles };
  const sections = values.file?.sections ?? {};
  const models = modelsConfig(sections.models);
  return {
    listen: addressOf(values, "listen"),
    store: storeOf(values),
    defaults: { harness: values.text("harness"), model: values.text("model") },
    tls: tlsOf(values),
    token: tokenOf(values),
    signer: configuredSigner(values),
    openai: openaiOf(values),
    anthropic: anthropicOf(values),
    google: googleOf(values),
    models,
    recover: values.oneOf("recover", ["leave", "resume"]),
    retentionMs: retentionMsOf(values),
    shutdownGraceMs: graceMsOf(values),
    logLevel: values.oneOf("logLevel", LOG_LEVELS),
    harnesses: harnessConfigs(sections.harnesses, around),
    agents: agentConfigs(sections.agents, around),
    environments: environmentConfigs(sections.environments, around),
    tools: toolsConfig(sections.tools, around),
    spawn: spawnConfig(sections.spawn),
    policies: policiesConfig(sections.policies),
    approvals: approvalsConfig(sections.approvals, around),
    budgets: budgetsConfig(sections.budgets, { hasPrices: models.prices.length > 0 }),
    registry: registryOf(values),
    pauseAfterIdleMs: idleMsOf(values, "pauseAfterIdle"),
    suspendAfterIdleMs: idleMsOf(values, "suspendAfterIdle"),
    tokens: mintingOf(values),
    // Read last: the harnesses, tools and approvals above have named theirs.
    hiddenFiles: [...pathsOf(values, "config"), ...secretFiles],
  };
}

/** Settings that name a file with a secret, which is hidden also where another setting goes before it. */
const SECRET_FILES = [
  "tokenFile",
  "operatorTokenFile",
  "signingKeyFile",
  "mintKeyFile",
  "tlsKey",
] as const satisfies readonly SettingName[];

function pathsOf(values: Values, name: SettingName): readonly string[] {
  const path = values.given(name);
  return path === undefined ? [] : [resolve(path)];
}

/** The values of flags and environment, with those of the config file that one of these names. */
function valuesOf(flags: Flags, env: Environment): Values {
  const values = new Values(flags, env, undefined);
  const path = values.given("config");
  return path === undefined ? values : new Values(flags, env, readConfigFile(path, values.sourceOf("config")));
}

/** The given values of settings, each with the name under which it was given. */
class Values {
  readonly #flags: Flags;
  readonly #env: Environment;
  readonly file: ConfigFile | undefined;

  constructor(flags: Flags, env: Environment, file: ConfigFile | undefined) {
    this.#flags = flags;
    this.#env = env;
    this.file = file;
  }

  given(name: SettingName): string | undefined {
    return filled(this.#flags[name]) ?? filled(this.#env[SETTINGS[name].env]) ?? filled(this.file?.settings.get(name));
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
  textOfFile(name: SettingName, path: string): string {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      throw this.wrong(name, "must name a file that can be read", error);
    }
  }

  /** An error that names the setting as it was given. */
  wrong(name: SettingName, message: string, cause?: unknown): HoldfastError {
    return invalidArgument(this.sourceOf(name), message, { cause });
  }

  /** The name under which a setting was given: its flag, its variable or its key in the file; its variable where it was not. */
  sourceOf(name: SettingName): string {
    const { flag, env, file }: Setting = SETTINGS[name];
    if (flag !== undefined && filled(this.#flags[name]) !== undefined) return `--${flag}`;
    const isInFile = filled(this.#env[env]) === undefined && filled(this.file?.settings.get(name)) !== undefined;
    return isInFile ? (file ?? env) : env;
  }
}

function filled(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === "" ? undefined : value.trim();
}

function addressOf(values: Values, name: "listen" | "registryListen"): ServerConfig["listen"] {
  const match = /^(?:\[(?<six>[0-9a-fA-F:.%]+)\]|(?<four>[^:[\]/\s]+)):(?<port>\d{1,5})$/.exec(values.text(name));
  const host = match?.groups?.["six"] ?? match?.groups?.["four"];
  const port = Number(match?.groups?.["port"]);
  if (host === undefined || port > 65_535) {
    throw values.wrong(name, "must be host:port, such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:443");
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
  const tls = { cert: values.textOfFile("tlsCert", cert), key: values.textOfFile("tlsKey", key) };
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

function tokenOf(values: Values, direct: SettingName = "token", inFile: SettingName = "tokenFile"): string | undefined {
  const token = values.given(direct);
  if (token !== undefined) return checkedToken(values, direct, token);
  const path = values.given(inFile);
  return path === undefined ? undefined : checkedToken(values, inFile, values.textOfFile(inFile, path).trim());
}

function registryOf(values: Values): ServerConfig["registry"] {
  const token = tokenOf(values, "operatorToken", "operatorTokenFile");
  const given = values.given("registryListen");
  if (given === undefined || given === "off") return { listen: given ?? "beside", token };
  return { listen: addressOf(values, "registryListen"), token };
}

function idleMsOf(values: Values, name: "pauseAfterIdle" | "suspendAfterIdle"): number | undefined {
  const given = values.given(name);
  return given === undefined ? undefined : wholeNumber(values, name, given, IDLE_MS_MAX);
}

function mintingOf(values: Values): ServerConfig["tokens"] {
  const lifetimeMs = wholeNumber(values, "mintLifetime", values.text("mintLifetime"), MINT_SECONDS_MAX) * 1_000;
  const path = values.given("mintKeyFile");
  const issuer = values.given("mintIssuer");
  if (path === undefined && issuer === undefined) return undefined;
  if (path === undefined) throw values.wrong("mintKeyFile", "must be given with the issuer");
  if (issuer === undefined) throw values.wrong("mintIssuer", "must be given with the key");
  return { signer: signerOf(values.textOfFile("mintKeyFile", path), values.sourceOf("mintKeyFile")), issuer, lifetimeMs };
}

function wholeNumber(values: Values, name: SettingName, text: string, max: number): number {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > max) throw values.wrong(name, `must be a whole number from 1 to ${max}`);
  return number;
}

/** The key is read once and kept by nobody but the signer. */
function configuredSigner(values: Values): Signer | undefined {
  const path = values.given("signingKeyFile");
  return path === undefined ? undefined : signerOf(values.textOfFile("signingKeyFile", path), values.sourceOf("signingKeyFile"));
}

function checkedToken(values: Values, name: SettingName, token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw values.wrong(name, "must hold a token of visible ASCII characters without white space");
}

function openaiOf(values: Values): ServerConfig["openai"] {
  const apiKey = values.given("openaiApiKey");
  const baseUrl = values.given("openaiBaseUrl");
  const api = values.given("openaiApi") === undefined ? undefined : values.oneOf("openaiApi", ["responses", "chat"] as const);
  return apiKey === undefined && baseUrl === undefined ? undefined : { apiKey, baseUrl, api };
}

function anthropicOf(values: Values): ServerConfig["anthropic"] {
  const apiKey = values.given("anthropicApiKey");
  return apiKey === undefined ? undefined : { apiKey, baseUrl: values.given("anthropicBaseUrl") };
}

function googleOf(values: Values): ServerConfig["google"] {
  const apiKey = values.given("googleApiKey");
  return apiKey === undefined ? undefined : { apiKey, baseUrl: values.given("googleBaseUrl") };
}

const RETENTION_DAYS_MAX = 36_500;

function retentionMsOf(values: Values): number | undefined {
  const text = values.text("retention");
  if (text === "forever") return undefined;
  if (text === "0") return 0;
  const retentionMs = spanMsOf(text);
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
