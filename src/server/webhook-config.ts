/** The webhooks of the config file: where they go, of what they tell, and what signs them. */

import { invalidArgument } from "../base/index.ts";
import { fieldsOf, secretOf, type ConfigSurroundings } from "./config-fields.ts";
import { flagOf, listOf, textOf, type ConfigValue } from "./config-value.ts";

/** One receiver. */
export interface WebhookConfig {
  readonly url: string;
  /** The key of the signatures. */
  readonly key: Uint8Array;
  /** Only these projects, "" being the default one; undefined for all. */
  readonly projects: readonly string[] | undefined;
  /** Whether arguments and reasons are sent, which may hold anything. */
  readonly includeArgs: boolean;
}

const WEBHOOKS_MAX = 16;
const PROJECTS_MAX = 256;
const KEY_BYTES_MIN = 24;
const KEY_BYTES_MAX = 1_024;
const SECRET_PREFIX = "whsec_";

/** The receivers in the value under `approvals.webhooks`. Throws INVALID_ARGUMENT that names the path of the key. */
export function webhooksConfig(webhooks: ConfigValue, around: ConfigSurroundings): readonly WebhookConfig[] {
  const read = listOf(webhooks, WEBHOOKS_MAX).map((value) => webhookOf(value, around));
  const twice = read.findIndex(({ url }, index) => read.findIndex((other) => other.url === url) !== index);
  if (twice >= 0) throw invalidArgument(`${webhooks.at}[${twice}].url`, "must not be that of another webhook");
  return read;
}

function webhookOf(value: ConfigValue, around: ConfigSurroundings): WebhookConfig {
  const fields = fieldsOf(value, ["url", "secret", "projects", "includeArgs"], []);
  return {
    url: fields.required("url", urlOf),
    key: fields.required("secret", (secret) => keyOf(secret, around)),
    projects: fields.optional("projects", (projects) => listOf(projects, PROJECTS_MAX).map(projectOf)),
    includeArgs: fields.optional("includeArgs", flagOf) ?? false,
  };
}

const LOOPBACK: readonly string[] = ["127.0.0.1", "[::1]", "localhost"];

/** In clear only to this machine: what is sent tells who may do what. */
function urlOf(value: ConfigValue): string {
  const text = textOf(value);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.includes(url.hostname));
  if (url === undefined || !isSafe || url.username !== "" || url.password !== "" || url.hash !== "") {
    throw invalidArgument(value.at, "must be an https address without a user, or an http one of this machine");
  }
  return url.href;
}

function projectOf({ at, value }: ConfigValue): string {
  if (typeof value === "string") return value;
  throw invalidArgument(at, "must be a project's name; empty is the default one");
}

/** `whsec_` and base64, as Standard Webhooks writes keys, or any text, whose UTF-8 is the key then. */
function keyOf(secret: ConfigValue, around: ConfigSurroundings): Uint8Array {
  const text = secretOf(secret, around);
  const key = text.startsWith(SECRET_PREFIX) ? Buffer.from(text.slice(SECRET_PREFIX.length), "base64") : Buffer.from(text);
  if (key.length >= KEY_BYTES_MIN && key.length <= KEY_BYTES_MAX) return key;
  throw invalidArgument(secret.at, `must hold a key of ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes: a text, or whsec_ and base64`);
}
