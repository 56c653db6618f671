/** A host with an agent on it, a model that does as it is told and tools that remember what they ran: for tests of agents. */

import { create } from "@bufbuild/protobuf";
import type { SessionUid } from "../base/index.ts";
import { replaySession } from "../controller/index.ts";
import { MessageSchema, UsageSchema, type Event } from "../gen/agentsessions/v1/common_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import type { Harness, Message, ModelChunk, ModelRequest, ToolExecutor } from "../spi/index.ts";
import { harnessCatalog, TestHost, TestModel, type TestHostOptions } from "./host.ts";
import { seededPorts } from "./ports.ts";

type PartInits = NonNullable<NonNullable<Parameters<typeof create<typeof MessageSchema>>[1]>["parts"]>;

/** What a model says: text and calls. A call is its tool, its id and its arguments; undefined for arguments that were no JSON. */
export interface Saying {
  readonly text?: string | undefined;
  readonly calls?:
    | readonly (readonly [tool: string, id: string, args?: Readonly<Record<string, string | number>> | undefined])[]
    | undefined;
  /** A block of reasoning as its provider gives it, before everything else. */
  readonly reasoning?: readonly [provider: string, block: string] | undefined;
}

/** The message of an answer. */
export function saying({ text = "", calls = [], reasoning }: Saying): Message {
  const parts: PartInits[number][] = [];
  if (reasoning !== undefined) {
    const [provider, block] = reasoning;
    const opaque = { case: "opaqueBytes", value: new TextEncoder().encode(block) } as const;
    parts.push({ part: { case: "reasoning", value: { provider, modelId: "m", opaque } } });
  }
  if (text !== "") parts.push({ part: { case: "text", value: { text } } });
  for (const [tool, id, args] of calls) {
    parts.push({ part: { case: "toolCall", value: { tool, id, ...(args === undefined ? {} : { args: { ...args } }) } } });
  }
  return create(MessageSchema, { role: "assistant", parts });
}

/** A model that answers the nth request of its life with what `script` says for it. */
export function sayingModel(script: (request: ModelRequest, index: number) => Saying): TestModel {
  let asked = 0;
  return new TestModel(async function* (request): AsyncGenerator<ModelChunk, void, undefined> {
    const message = saying(script(request, asked++));
    yield {
      kind: "completed",
      response: { message, usage: create(UsageSchema, { model: "m", inputTokens: 10n, outputTokens: 5n }) },
      facts: {},
    };
  });
}

/** What an agent's world is made of. */
export interface AgentWorldOptions {
  readonly openJournal: (ports: ReturnType<typeof seededPorts>) => JournalStore;
  readonly agent: Harness;
  readonly model: TestModel;
  readonly tools: ToolExecutor;
}

/** One journal, one agent, and any number of hosts. */
export class AgentWorld {
  readonly ports = seededPorts();
  readonly journal: JournalStore;
  readonly model: TestModel;
  readonly tools: ToolExecutor;
  readonly #agent: Harness;

  constructor({ openJournal, agent, model, tools }: AgentWorldOptions) {
    this.journal = openJournal(this.ports);
    this.model = model;
    this.tools = tools;
    this.#agent = agent;
  }

  host(more: Partial<TestHostOptions> = {}): TestHost {
    const { ports, journal, tools, model: models } = this;
    return new TestHost({ journal, ports, tools, models, harnesses: { test: this.#agent }, ...more });
  }

  /** How each ended turn replays: `same`, or why not. */
  async checks(session: SessionUid): Promise<string[]> {
    const row = await this.journal.get(session);
    if (row === undefined) throw new Error("no such session");
    const { journal, ports } = this;
    const harnesses = harnessCatalog({ test: this.#agent });
    const checks = await Array.fromAsync(replaySession({ journal, ports, harnesses }, { row }));
    return checks.map(({ outcome }) => (outcome.kind === "diverged" ? `diverged: ${outcome.divergence.reason}` : outcome.kind));
  }

  /** The session's events. */
  async events(host: TestHost, session: SessionUid): Promise<Event[]> {
    return (await host.records(session)).map(({ event }) => event!);
  }
}

/** A config of the agent harness. */
export function agentConfig(config: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(config));
}
