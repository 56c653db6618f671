/** What a configured server is made of: its journal, its models and its harnesses. Only here are adapters named. */

import { readFileSync } from "node:fs";
import { invalidArgument, type Log, type Ports } from "../base/index.ts";
import { createAgentHarness, createChatHarness, createEchoHarness, createHistoryHarness } from "../harnesses/index.ts";
import type { JournalStore } from "../journal/index.ts";
import {
  createAnthropicProvider,
  createEchoProvider,
  createGoogleProvider,
  createModelCatalog,
  createOpenAiProvider,
  createScriptedModel,
  createServedModels,
  type ModelRoute,
} from "../models/index.ts";
import type { Harness, ModelCatalog, ModelProvider } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { keyPath } from "./config-value.ts";
import type { ServerConfig } from "./config.ts";

/** Opens the journal. The file is written by a thread of its own, so that no call waits for the disk of another. */
export async function openJournal(config: ServerConfig, ports: Ports, log: Log): Promise<JournalStore> {
  const { clock, digest } = ports;
  if (config.store.kind === "memory") return createMemoryStore({ clock, digest, log });
  return openSqliteStore({ folder: config.store.folder, clock, digest, log, writer: "worker" });
}

/** The harnesses that every server has. */
export function builtInHarnesses(): Readonly<Record<string, Harness>> {
  return { echo: createEchoHarness(), chat: createChatHarness(), agent: createAgentHarness(), history: createHistoryHarness() };
}

/**
 * The models that the configuration gives access to, and `more` before them. Throws INVALID_ARGUMENT for a script that is none, and for a
 * fallback that no provider serves.
 */
export function modelsOf(config: ServerConfig, ports: Ports, more: readonly ModelRoute[]): ModelCatalog {
  const { clock } = ports;
  const { fallbacks, concurrency, prices } = config.models;
  const catalog = createModelCatalog({ routes: [...more, ...routesOf(config, ports)], fallback: openAiOf(config, ports) });
  for (const { match, value } of fallbacks) {
    const unserved = value.some((model) => catalog.providerOf(model) === undefined);
    if (unserved) throw invalidArgument(keyPath("models.fallbacks", match), "must be models that this host serves");
  }
  return createServedModels({ catalog, clock, fallbacks, concurrency, prices });
}

function routesOf(config: ServerConfig, ports: Ports): ModelRoute[] {
  const { clock, random } = ports;
  const routes: ModelRoute[] = [{ match: "echo", provider: createEchoProvider() }];
  const { model } = config.defaults;
  // Only the operator names a script: what a session's creator asks for opens no file.
  if (model.startsWith(SCRIPT_PREFIX)) routes.push({ match: model, provider: scriptedModel(model.slice(SCRIPT_PREFIX.length), ports) });
  if (config.anthropic !== undefined) {
    const provider = createAnthropicProvider({ ...config.anthropic, clock, random });
    routes.push({ match: "claude-*", provider }, { match: "anthropic/*", provider });
  }
  if (config.google !== undefined) {
    const provider = createGoogleProvider({ ...config.google, clock, random });
    routes.push({ match: "gemini-*", provider }, { match: "google/*", provider });
  }
  for (const { match, value } of config.openai === undefined ? [] : config.models.api) {
    routes.push({ match, provider: createOpenAiProvider({ ...config.openai, api: value, clock, random }) });
  }
  return routes;
}

function openAiOf(config: ServerConfig, { clock, random }: Ports): ModelProvider | undefined {
  return config.openai === undefined ? undefined : createOpenAiProvider({ ...config.openai, clock, random });
}

const SCRIPT_PREFIX = "script:";

function scriptedModel(path: string, { clock }: Ports): ModelProvider {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw invalidArgument("model", "must name a script that can be read, after script:", { cause: error });
  }
  return createScriptedModel(text, { clock });
}
