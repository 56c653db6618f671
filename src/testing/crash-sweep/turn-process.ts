/**
 * A program that runs turns on a journal and can be killed at any moment, and what comes after: one that resumes what was
 * interrupted, and one that checks. Each is a process of its own; what it says are lines of JSON.
 */

import { create } from "@bufbuild/protobuf";
import { SILENT_LOG, hostIdOf, newUuid, type Ports, type SessionUid } from "../../base/index.ts";
import { createController, replaySession, type Controller, type RunningTurn } from "../../controller/index.ts";
import { EventKind, ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { sessionOf, type JournalStore, type SessionRow } from "../../journal/index.ts";
import { textMessage, type Harness, type ModelCatalog } from "../../spi/index.ts";
import { emptySeed, harnessCatalog, testHarness } from "../host.ts";
import { SessionEvidence, violationText } from "../invariants.ts";

/**
 * What a program is to do: run turns for ever; resume what is open; verify and replay everything; or do that with a harness that asks
 * for something else.
 */
export type TurnRole = "run" | "resume" | "check" | "check-changed";

/** What a program says. */
export type TurnLine =
  /** A client saw this record on a stream. */
  | { readonly kind: "saw"; readonly session: string; readonly seq: number; readonly contentHash: string }
  | { readonly kind: "resumed"; readonly session: string; readonly executionId: string; readonly outcome: string }
  | {
      readonly kind: "journal";
      readonly session: string;
      /** Of records 1, 2, 3 … */
      readonly contentHashes: readonly string[];
      /** Broken promises that the journal shows by itself. */
      readonly violations: readonly string[];
      /** MODEL_CALLs by execution id. */
      readonly modelCalls: Readonly<Record<string, number>>;
      readonly openTurn: boolean;
    }
  | { readonly kind: "replayed"; readonly session: string; readonly turns: number; readonly others: readonly string[] };

/** What a program is made of. */
export interface TurnProcessOptions {
  readonly role: TurnRole;
  readonly journal: JournalStore;
  readonly models: ModelCatalog;
  readonly ports: Ports;
  readonly say: (line: TurnLine) => void;
}

/** How many sessions there are. */
const SESSIONS = 3;
/** Model calls of one turn. */
const CALLS = 3;

/** Each request says whose it is, so that the server that counts them can tell. Tools are reported between the calls. */
function harness(word: string): Harness {
  return testHarness(async (start, sink) => {
    const messages = [...start.inputs];
    for (let step = 0; step < CALLS; step++) {
      const asked = textMessage("user", `${word} ${start.executionId} step ${step}`);
      const response = await sink.model({ model: start.model, messages: [...messages, asked] });
      await sink.usage(response.usage);
      messages.push(asked, response.message);
      await sink.report(create(ToolResultSchema, { id: `t${step}`, output: { step } }));
      await sink.output(`after step ${step}`);
    }
  });
}

const HARNESSES = harnessCatalog({ test: harness("turn") });
const CHANGED = harnessCatalog({ test: harness("changed turn") });

/** Does what the role says. `run` never resolves. */
export async function turnProcess(options: TurnProcessOptions): Promise<void> {
  const { journal, models, ports, role } = options;
  const hostId = hostIdOf(newUuid(ports));
  const controller = createController({ journal, harnesses: HARNESSES, models, ports, log: SILENT_LOG, hostId });
  if (role === "run") return void (await Promise.all((await sessions(options)).map((session) => runTurns(options, controller, session))));
  if (role === "resume") await resumeAll(options, controller);
  else for (const session of await sessions(options)) await check(options, session);
  await controller.shutdown({ graceMs: 0 });
}

async function sessions({ journal, ports }: TurnProcessOptions): Promise<readonly SessionUid[]> {
  const { rows } = await journal.list({ project: "", limit: SESSIONS });
  const uids = rows.map(({ seed }) => seed.uid);
  while (uids.length < SESSIONS) {
    const uid = newUuid(ports) as SessionUid;
    await journal.create(emptySeed(uid, ports.clock.nowMs()));
    uids.push(uid);
  }
  return uids;
}

/** Turn after turn, each watched by a client from its first record to its last. */
async function runTurns(options: TurnProcessOptions, controller: Controller, session: SessionUid): Promise<void> {
  for (let turns = 0; ; turns++) {
    const row = await rowOf(options.journal, session);
    const invocation = {
      inputs: [textMessage("user", `input ${turns}`)],
      caller: undefined,
      harness: "",
      config: new Uint8Array(),
      resumeFromSeq: 0n,
      expectedLastSeq: row.projection.lastSeq,
      deadlineMs: undefined,
    };
    const turn = await controller.begin(session, await controller.plan(row, invocation));
    await watchTurn(options, controller, turn);
  }
}

async function watchTurn({ say }: TurnProcessOptions, controller: Controller, turn: RunningTurn): Promise<void> {
  const { session, startSeq } = turn;
  const until = turn.outcome.then(({ lastSeq }) => lastSeq);
  for await (const item of controller.watch({ session, fromSeq: startSeq, until, deltas: false })) {
    if (item.kind === "record") say({ kind: "saw", session, seq: item.record.seq, contentHash: item.record.contentHash });
  }
}

async function resumeAll(options: TurnProcessOptions, controller: Controller): Promise<void> {
  for (const session of await sessions(options)) {
    const { turn } = await controller.resume(session, undefined);
    if (turn === undefined) continue;
    const outcome = await turn.outcome;
    const text = outcome.kind === "ended" ? outcome.state : outcome.kind;
    options.say({ kind: "resumed", session, executionId: turn.executionId, outcome: text });
  }
}

async function check(options: TurnProcessOptions, session: SessionUid): Promise<void> {
  const { journal, ports, say, role } = options;
  const row = await rowOf(journal, session);
  const evidence = new SessionEvidence(session, ports.digest);
  const violations: string[] = [];
  for await (const page of journal.read({ session })) {
    for (const record of page) violations.push(...evidence.push(record).map(violationText));
  }
  violations.push(...evidence.rowViolations(row).map(violationText));
  if (evidence.lastSeq !== row.projection.lastSeq)
    violations.push(`last_seq is ${sessionOf(row).lastSeq}, ${evidence.lastSeq} records are there`);
  const modelCalls: Record<string, number> = {};
  for (const { event } of evidence.records) {
    if (event.kind === EventKind.EVENT_MODEL_CALL) modelCalls[event.executionId] = (modelCalls[event.executionId] ?? 0) + 1;
  }
  const contentHashes = evidence.records.map(({ contentHash }) => contentHash);
  say({ kind: "journal", session, contentHashes, violations, modelCalls, openTurn: row.projection.openTurn !== undefined });
  const harnesses = role === "check" ? HARNESSES : CHANGED;
  const checks = await Array.fromAsync(replaySession({ journal, harnesses, ports }, { row }));
  const others = checks.filter(({ outcome }) => outcome.kind !== "same").map(({ lastSeq, outcome }) => `${outcome.kind} at ${lastSeq}`);
  say({ kind: "replayed", session, turns: checks.length, others });
}

async function rowOf(journal: JournalStore, session: SessionUid): Promise<SessionRow> {
  const row = await journal.get(session);
  if (row === undefined) throw new Error("the session is gone");
  return row;
}
