/** A host in this process, put together as the server does it: controller, SQLite, built-in harnesses, the model that answers at once. */

import { hostIdOf, SILENT_LOG, type SessionUid } from "../src/base/index.ts";
import { createController, type Controller, type ExecInvocation, type TurnOutcome } from "../src/controller/index.ts";
import { createAgentHarness, createChatHarness, createEchoHarness } from "../src/harnesses/index.ts";
import type { JournalStore } from "../src/journal/index.ts";
import { createEchoProvider, createModelCatalog } from "../src/models/index.ts";
import { createHarnessCatalog } from "../src/placement/index.ts";
import { textMessage, type ModelProvider, type ToolExecutor } from "../src/spi/index.ts";
import { PORTS } from "./stores.ts";

/** The name of these hosts in leases. */
export const HOST_ID = hostIdOf("bench");

/** What a host has beside what every one has. */
export interface HostParts {
  /** Serves every model but `echo`. */
  readonly provider?: ModelProvider | undefined;
  readonly tools?: ToolExecutor | undefined;
}

/** A controller over `journal`. */
export function newController(journal: JournalStore, { provider, tools }: HostParts = {}): Controller {
  return createController({
    journal,
    harnesses: createHarnessCatalog({ echo: createEchoHarness(), chat: createChatHarness(), agent: createAgentHarness() }),
    models: createModelCatalog({ routes: [{ match: "echo", provider: createEchoProvider() }], fallback: provider }),
    tools,
    ports: PORTS,
    log: SILENT_LOG,
    hostId: HOST_ID,
  });
}

/** What a turn is given. */
export interface TurnInput {
  readonly texts: readonly string[];
  /** Default: empty. */
  readonly config?: Uint8Array<ArrayBuffer> | undefined;
}

/** Runs one turn as an Exec does: read the session, plan, begin, wait for the end. Throws unless it completed. */
export async function runTurn(controller: Controller, journal: JournalStore, session: SessionUid, input: TurnInput): Promise<void> {
  const row = await journal.get(session);
  if (row === undefined) throw new Error("the session is gone");
  const { texts, config = BARE_INVOCATION.config } = input;
  const plan = await controller.plan(row, { ...BARE_INVOCATION, config, inputs: texts.map((text) => textMessage("user", text)) });
  const turn = await controller.begin(session, plan);
  requireCompleted(await turn.outcome);
}

const BARE_INVOCATION: ExecInvocation = {
  inputs: [],
  caller: undefined,
  harness: "",
  config: new Uint8Array(),
  resumeFromSeq: 0n,
  expectedLastSeq: undefined,
  deadlineMs: undefined,
};

function requireCompleted(outcome: TurnOutcome): void {
  if (outcome.kind === "interrupted") throw outcome.error;
  if (outcome.kind !== "ended" || outcome.state !== "COMPLETED") throw new Error(`a turn did not complete: ${outcome.kind}`);
}
