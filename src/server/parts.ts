/** What a configured server is made of: its journal, its models and its harnesses. Only here are adapters named. */

import type { Log, Ports } from "../base/index.ts";
import { createChatHarness, createEchoHarness } from "../harnesses/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { createAnthropicProvider, createEchoProvider, createModelCatalog, createOpenAiProvider, type ModelRoute } from "../models/index.ts";
import type { Harness, ModelCatalog } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import type { ServerConfig } from "./config.ts";

/** Opens the journal. The file is written by a thread of its own, so that no call waits for the disk of another. */
export async function openJournal(config: ServerConfig, ports: Ports, log: Log): Promise<JournalStore> {
  const { clock, digest } = ports;
  if (config.store.kind === "memory") return createMemoryStore({ clock, digest, log });
  return openSqliteStore({ folder: config.store.folder, clock, digest, log, writer: "worker" });
}

/** The harnesses that every server has. */
export function builtInHarnesses(): Readonly<Record<string, Harness>> {
  return { echo: createEchoHarness(), chat: createChatHarness() };
}

/** The models that the configuration gives access to, and `more` before them. */
export function modelsOf(config: ServerConfig, ports: Ports, more: readonly ModelRoute[]): ModelCatalog {
  const { clock, random } = ports;
  const routes: ModelRoute[] = [...more, { match: "echo", provider: createEchoProvider() }];
  if (config.anthropic !== undefined) {
    const provider = createAnthropicProvider({ ...config.anthropic, clock, random });
    routes.push({ match: "claude-*", provider }, { match: "anthropic/*", provider });
  }
  if (config.openai === undefined) return createModelCatalog({ routes });
  return createModelCatalog({ routes, fallback: createOpenAiProvider({ ...config.openai, clock, random }) });
}
