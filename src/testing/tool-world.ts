/** Hosts over one journal, with one harness and tools that remember what they ran: for tests of tools and approvals. */

import { create } from "@bufbuild/protobuf";
import type { SessionUid } from "../base/index.ts";
import { CONTROLLER_LIMITS, replaySession, type TurnOutcome } from "../controller/index.ts";
import { ApprovalRefSchema, IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { Session } from "../gen/agentsessions/v1/session_pb.ts";
import { sessionOf, type JournalStore, type SessionRow, type StoredRecord } from "../journal/index.ts";
import type { ApprovalRef } from "../spi/index.ts";
import { DyingStore, type Death } from "./dying-store.ts";
import { harnessCatalog, testHarness, TestHost, type HarnessRun, type TestHostOptions } from "./host.ts";
import { seededPorts } from "./ports.ts";
import { TestTools } from "./tools.ts";

/** One journal, one harness, some tools, and any number of hosts. */
export class ToolWorld {
  readonly ports = seededPorts();
  readonly journal: JournalStore;
  readonly tools: TestTools;
  readonly #run: HarnessRun;

  constructor(
    openJournal: (ports: ReturnType<typeof seededPorts>) => JournalStore,
    run: HarnessRun,
    tools: ConstructorParameters<typeof TestTools>[0],
  ) {
    this.journal = openJournal(this.ports);
    this.tools = new TestTools(tools);
    this.#run = run;
  }

  host(more: Partial<TestHostOptions> = {}): TestHost {
    const { ports, journal, tools } = this;
    return new TestHost({ journal, ports, tools, harnesses: { test: testHarness(this.#run) }, ...more });
  }

  /** Drives a turn on a host that dies at an append; `drive` begins it. Resolves once the dead host's lease has run out. */
  async dies(death: Death, drive: (host: TestHost) => Promise<void>, more: Partial<TestHostOptions> = {}): Promise<void> {
    const store = new DyingStore(this.journal, death);
    const host = this.host({ ...more, journal: store.view(), hostId: "dying" });
    await drive(host);
    await host[Symbol.asyncDispose]();
    if (!store.dead) throw new Error("the host has not died");
    this.ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
  }

  /** A session with a turn whose host died at an append. */
  async crashed(death: Death, more: Partial<TestHostOptions> = {}): Promise<SessionUid> {
    let session: SessionUid | undefined;
    const drive = async (host: TestHost): Promise<void> => {
      session = await host.createSession();
      await (
        await host.begin(session, [])
      ).outcome;
    };
    await this.dies(death, drive, more);
    return session!;
  }

  /** The session as callers see it. */
  async session(uid: SessionUid): Promise<Session> {
    const row = await this.journal.get(uid);
    if (row === undefined) throw new Error("no such session");
    return sessionOf(row);
  }

  /** How each ended turn replays: `same`, or why not. */
  async checks(session: SessionUid): Promise<string[]> {
    const { journal, ports, tools } = this;
    const row = await journal.get(session);
    if (row === undefined) throw new Error("no such session");
    const context = { journal, ports, tools, harnesses: harnessCatalog({ test: testHarness(this.#run) }) };
    const checks = await Array.fromAsync(replaySession(context, { row }));
    return checks.map(({ outcome }) => (outcome.kind === "diverged" ? `diverged: ${outcome.divergence.reason}` : outcome.kind));
  }
}

/** A session whose turn waits for a decision. */
export async function parkedSession(host: TestHost): Promise<{ readonly session: SessionUid; readonly ref: ApprovalRef }> {
  const session = await host.createSession();
  const outcome = await (await host.begin(session, [])).outcome;
  if (outcome.kind !== "parked") throw new Error(`the turn is ${outcome.kind}`);
  return { session, ref: outcome.ref };
}

/** Decides. */
export function decide(
  host: TestHost,
  session: SessionUid,
  ref: ApprovalRef,
  approved: boolean,
  more: { readonly reason?: string; readonly who?: string } = {},
): Promise<{ row: SessionRow; decision: StoredRecord }> {
  const actor = more.who === undefined ? undefined : create(IdentityRefSchema, { principal: more.who });
  return host.controller.approve({ session, ref, approved, reason: more.reason ?? "", actor });
}

/** Resumes a session; resolves with how its turn went, or with nothing where there was nothing to do. */
export async function resumed(host: TestHost, session: SessionUid): Promise<TurnOutcome | undefined> {
  return (await host.controller.resume(session, undefined)).turn?.outcome;
}

export function approvalRef(executionId: string, toolCallId: string, requestSeq: bigint): ApprovalRef {
  return create(ApprovalRefSchema, { executionId, toolCallId, requestSeq });
}
