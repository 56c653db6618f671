/** A host for tests: a controller over a store, with harnesses written in place and a model that does as it is told. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, hostIdOf, newSessionUid, SILENT_LOG, type Log, type Ports, type SessionUid } from "../base/index.ts";
import { decodeLogRecord } from "../canon/index.ts";
import {
  createController,
  type BudgetConfig,
  type Controller,
  type ControllerLimits,
  type ExecInvocation,
  type IdlePolicy,
  type PolicyRule,
  type RunningTurn,
} from "../controller/index.ts";
import { UsageSchema, type Event, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { CapabilitiesSchema, HarnessDescriptorSchema, Resumability, type HarnessDescriptor } from "../gen/agentsessions/v1/harness_pb.ts";
import { eventKindName, type JournalStore, type SessionSeed } from "../journal/index.ts";
import { createHarnessCatalog } from "../placement/index.ts";
import {
  textMessage,
  type Harness,
  type HarnessCatalog,
  type HarnessEntry,
  type ModelCatalog,
  type ModelChunk,
  type ModelProvider,
  type ModelRequest,
  type ModelResponse,
  type SessionBlobs,
  type TokenIssuer,
  type ToolExecutor,
  type TurnTools,
} from "../spi/index.ts";

/** A harness's run as a function. */
export type HarnessRun = Harness["run"];

/** A harness with the given run; its descriptor may be changed field by field. */
export function testHarness(run: HarnessRun, descriptor: Partial<HarnessDescriptor> = {}): Harness {
  const described = create(HarnessDescriptorSchema, {
    id: "test",
    version: "1",
    models: [],
    tools: [],
    ...descriptor,
    capabilities: create(CapabilitiesSchema, { resumability: Resumability.STATELESS_REPLAY, forkSafe: true, streaming: true }),
  });
  return { describe: async () => described, run };
}

/** A catalog of harnesses in this process. */
export function harnessCatalog(harnesses: Readonly<Record<string, Harness>>): HarnessCatalog {
  return createHarnessCatalog(harnesses);
}

/** A completion with one text part. */
export function textResponse(text: string, model = "test"): ModelResponse {
  return {
    message: textMessage("assistant", text),
    usage: create(UsageSchema, { model, inputTokens: 1n, outputTokens: 1n }),
  };
}

/** A provider that answers as `respond` does and counts its calls. */
export class TestModel implements ModelProvider, ModelCatalog {
  readonly name = "test";
  readonly requests: ModelRequest[] = [];
  readonly #respond: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelChunk>;

  constructor(respond?: (request: ModelRequest, signal: AbortSignal) => AsyncIterable<ModelChunk>) {
    this.#respond = respond ?? answering("hello");
  }

  providerOf(): ModelProvider {
    return this;
  }

  complete(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelChunk> {
    this.requests.push(request);
    return this.#respond(request, options.signal);
  }
}

/** Streams `text` word by word and completes. */
export function answering(text: string): () => AsyncGenerator<ModelChunk, void, undefined> {
  return async function* () {
    for (const word of text.split(/(?<= )/)) yield { kind: "text", partIndex: 0, text: word };
    yield { kind: "completed", response: textResponse(text), facts: {} };
  };
}

/** Waits for the signal, then throws its reason: a model that never answers. */
export async function* silent(_request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelChunk, void, undefined> {
  await new Promise<void>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** What a test host is made of. */
export interface TestHostOptions {
  readonly journal: JournalStore;
  readonly ports: Ports;
  readonly harnesses: Readonly<Record<string, Harness>>;
  /** Harnesses on runtimes. */
  readonly placed?: readonly HarnessEntry[] | undefined;
  readonly models?: ModelCatalog | undefined;
  readonly idle?: IdlePolicy | undefined;
  readonly tokens?: TokenIssuer | undefined;
  readonly tools?: ToolExecutor | undefined;
  readonly turnTools?: TurnTools | undefined;
  readonly outputs?: SessionBlobs | undefined;
  readonly policies?: readonly PolicyRule[] | undefined;
  readonly budgets?: BudgetConfig | undefined;
  readonly limits?: Partial<ControllerLimits> | undefined;
  readonly hostId?: string | undefined;
  readonly log?: Log | undefined;
}

/** A controller and the few calls that tests make on it. */
export class TestHost implements AsyncDisposable {
  readonly controller: Controller;
  readonly journal: JournalStore;
  readonly #ports: Ports;

  constructor(options: TestHostOptions) {
    this.journal = options.journal;
    this.#ports = options.ports;
    this.controller = createController({
      journal: options.journal,
      harnesses: createHarnessCatalog(options.harnesses, options.placed),
      models: options.models ?? new TestModel(),
      tools: options.tools,
      turnTools: options.turnTools,
      outputs: options.outputs,
      policies: options.policies,
      budgets: options.budgets,
      ports: options.ports,
      log: options.log ?? SILENT_LOG,
      hostId: hostIdOf(options.hostId ?? "test-host"),
      limits: options.limits,
      idle: options.idle,
      tokens: options.tokens,
    });
  }

  /** Creates a session and returns its uid. */
  async createSession(seed: Partial<SessionSeed> = {}): Promise<SessionUid> {
    const uid = newSessionUid(this.#ports);
    const outcome = await this.journal.create({ ...emptySeed(uid, this.#ports.clock.nowMs()), ...seed });
    if (outcome.kind !== "created") throw new Error(`the session was not created: ${outcome.kind}`);
    return outcome.row.seed.uid;
  }

  /** Begins a turn with text inputs. */
  async begin(session: SessionUid, inputs: readonly string[], invocation: Partial<ExecInvocation> = {}): Promise<RunningTurn> {
    const row = await this.journal.get(session);
    if (row === undefined) throw new HoldfastError("not_found", "session: no session has this uid");
    const messages = inputs.map((text) => textMessage("user", text));
    const plan = await this.controller.plan(row, { ...emptyInvocation, inputs: messages, ...invocation });
    return this.controller.begin(session, plan);
  }

  /** Every committed record of a session, decoded. */
  async records(session: SessionUid): Promise<LogRecord[]> {
    return recordsIn(this.journal, session);
  }

  /** The session's events in short words: `INPUT hello`, `END COMPLETED`. */
  async story(session: SessionUid): Promise<string[]> {
    return storyIn(this.journal, session);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.controller[Symbol.asyncDispose]();
  }
}

const emptyInvocation: ExecInvocation = {
  inputs: [],
  caller: undefined,
  harness: "",
  config: new Uint8Array(),
  resumeFromSeq: 0n,
  expectedLastSeq: undefined,
  deadlineMs: undefined,
};

/** A seed with nothing but a uid and the harness `test`. */
export function emptySeed(uid: SessionUid, createTimeMs: number): SessionSeed {
  return {
    uid,
    project: "",
    name: "",
    harness: "test",
    model: "test",
    identity: undefined,
    origin: undefined,
    labels: {},
    annotations: {},
    createTimeMs,
  };
}

async function recordsIn(journal: JournalStore, session: SessionUid): Promise<LogRecord[]> {
  const records: LogRecord[] = [];
  for await (const page of journal.read({ session })) records.push(...page.map((record) => decodeLogRecord(record.bytes)));
  return records;
}

/** The events of a session in short words, as its journal has them. */
export async function storyIn(journal: JournalStore, session: SessionUid): Promise<string[]> {
  return (await recordsIn(journal, session)).map((record) => (record.event === undefined ? "?" : storyOf(record.event)));
}

/** One event in short words. */
export function storyOf(event: Event): string {
  const kind = eventKindName(event.kind);
  const { body } = event;
  switch (body.case) {
    case "message":
      return `${kind} ${body.value.parts.map((part) => (part.part.case === "text" ? part.part.value.text : part.part.case)).join("")}`;
    case "end":
      return `${kind} ${body.value.state}`;
    case "lifecycle":
      return `${kind} ${body.value.kind} ${body.value.detail}`.trimEnd();
    case "error":
      return `${kind} ${body.value.code}`;
    case "tool":
      return `${kind} ${body.value.id}`;
    case "result":
      return `${kind} ${body.value.id}${body.value.isError ? ` ${body.value.code}` : ""}`;
    case "approval":
      return `${kind} ${body.value.toolCallId}`;
    case "approvalResult":
      return `${kind} ${body.value.toolCallId} ${body.value.approved}`;
    default:
      return kind;
  }
}
