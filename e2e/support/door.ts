/** Worlds with an interactive door, the real agent on it and a model that is scripted: over the memory store and over SQLite. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { SILENT_LOG } from "../../src/base/index.ts";
import { UsageSchema } from "../../src/gen/agentsessions/v1/common_pb.ts";
import { ToolCategoryHint, type ToolSchemaSchema } from "../../src/gen/roz/v1/agent_pb.ts";
import { createAgentHarness, createHistoryHarness } from "../../src/harnesses/index.ts";
import { plainEnvironment } from "../../src/service/index.ts";
import type { Environment, ModelChunk } from "../../src/spi/index.ts";
import { createMemoryStore } from "../../src/stores/memory/index.ts";
import { createMemoryNotes, openSqliteNotes } from "../../src/stores/notes/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { saying, type Saying } from "../../src/testing/agent-world.ts";
import { DoorWorld, type DoorWorldOptions } from "../../src/testing/door-world.ts";
import { TestModel } from "../../src/testing/host.ts";
import { seededPorts } from "../../src/testing/ports.ts";
import { TemporaryFolder } from "../../src/testing/temporary-folder.ts";
import { compileSchema } from "../../src/tools/index.ts";

/** Where a world keeps what it has. */
export type DoorStore = "memory" | "sqlite";
export const DOOR_STORES: readonly DoorStore[] = ["memory", "sqlite"];

/** A world; disposing of it closes its stores. */
export class TestDoorWorld extends DoorWorld implements AsyncDisposable {
  readonly #folder: TemporaryFolder;

  constructor(folder: TemporaryFolder, options: DoorWorldOptions) {
    super(options);
    this.#folder = folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.notes[Symbol.asyncDispose]();
    await this.journal[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}

export async function doorWorld(store: DoorStore = "memory", more: Partial<DoorWorldOptions> = {}): Promise<TestDoorWorld> {
  const folder = new TemporaryFolder();
  const ports = seededPorts();
  const { clock, digest } = ports;
  const at = { folder: folder.path };
  const isMemory = store === "memory";
  return new TestDoorWorld(folder, {
    ports,
    journal: isMemory
      ? createMemoryStore({ clock, digest })
      : await openSqliteStore({ ...at, clock, digest, log: SILENT_LOG, writer: "inline" }),
    notes: isMemory ? createMemoryNotes() : openSqliteNotes(at),
    harnesses: { agent: createAgentHarness(), history: createHistoryHarness() },
    compile: compileSchema,
    ...more,
  });
}

/** What a scripted model says, and why it stops. */
export interface ScriptedSaying extends Saying {
  readonly stopReason?: string | undefined;
  /** The pieces in which text arrives; each waits for the reader to have had the one before. */
  readonly pieces?: readonly string[] | undefined;
  readonly thinking?: string | undefined;
}

/**
 * A model that says one thing after the other; "done" when it has nothing more to say. Which one is told by how often the assistant has spoken
 * in the request, so a restart says the same again.
 */
export function scriptedModel(...sayings: readonly ScriptedSaying[]): TestModel {
  return new TestModel(async function* (request): AsyncGenerator<ModelChunk, void, undefined> {
    const spoken = request.messages.filter(({ role }) => role === "assistant").length;
    const said = sayings[spoken] ?? { text: "done" };
    const text = said.text ?? said.pieces?.join("");
    const message = saying({ ...said, text });
    let partIndex = 0;
    if (said.thinking !== undefined) {
      message.parts.unshift(...saying({ reasoning: ["script", said.thinking] }).parts);
      const [first] = message.parts;
      if (first?.part.case === "reasoning") first.part.value.summary = saying({ text: said.thinking }).parts;
      yield { kind: "reasoning", partIndex: partIndex++, text: said.thinking };
    }
    for (const piece of said.pieces ?? (text === undefined ? [] : [text])) {
      yield { kind: "text", partIndex, text: piece };
      // The reader's turn.
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    const usage = create(UsageSchema, { model: "m", inputTokens: 10n, outputTokens: 5n });
    yield { kind: "completed", response: { message, usage }, facts: { stopReason: said.stopReason, cachedInputTokens: 4 } };
  });
}

/** A tool of a client's that only reads. */
export function pureTool(name: string, more: MessageInitShape<typeof ToolSchemaSchema> = {}): MessageInitShape<typeof ToolSchemaSchema> {
  return { name, description: `${name} it`, category: ToolCategoryHint.TOOL_CATEGORY_PURE, ...more };
}

/** A tool of a client's that acts on the world. */
export function physicalTool(
  name: string,
  more: MessageInitShape<typeof ToolSchemaSchema> = {},
): MessageInitShape<typeof ToolSchemaSchema> {
  return { name, description: `${name} it`, category: ToolCategoryHint.TOOL_CATEGORY_PHYSICAL, ...more };
}

/** An environment with changes. */
export function environmentWith(changes: Partial<Environment>): Environment {
  return { ...plainEnvironment(changes.id), ...changes };
}
