/**
 * Clients that race for one session at full speed: Exec, Fork, Suspend, Resume, Cancel and Delete, from several connections to a real
 * server process. The promises (I6):
 * - every answer is one that the contract allows to its call
 * - the chain verifies, and so do those of all forks; every turn has one END, nothing is mixed, nothing follows a deletion
 * - a turn that its client was told of is in the journal, ended
 *
 * HOLDFAST_RACE_SECONDS=60 races for as long as a release needs; the default keeps the tests quick.
 */

import { create, fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError, type ErrorCode } from "../src/base/index.ts";
import { createClient, type Client } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { EventSchema, Lifecycle_Kind, LogRecordSchema, type LogRecord } from "../src/gen/agentsessions/v1/common_pb.ts";
import { createChainVerifier } from "../src/journal/index.ts";
import { nodeDigest } from "../src/node/index.ts";
import { SeededRandom } from "../src/testing/index.ts";
import { startModelServer } from "../src/testing/model-server.ts";
import { grammarFault } from "./support/journal-grammar.ts";
import { newDataFolder, serve } from "./support/server-process.ts";

const RACE_SECONDS = Number(process.env["HOLDFAST_RACE_SECONDS"] ?? "5");
const CLIENTS = 4;
/** How long one session is raced for, unless it is deleted before. */
const ROUND_MS = 1_000;

type Answer = "ok" | ErrorCode;

/** The answers that the contract allows to each call on a session for which others race. */
const ALLOWED: Readonly<Record<string, readonly Answer[]>> = {
  // ABORTED: another turn runs, or this one was cut off by whoever took the session over. FAILED_PRECONDITION: it is deleted.
  exec: ["ok", "aborted", "failed_precondition"],
  // FAILED_PRECONDITION: the execution is not the open one any more.
  cancel: ["ok", "aborted", "failed_precondition"],
  // ABORTED: a turn runs. FAILED_PRECONDITION: it is deleted.
  suspend: ["ok", "aborted", "failed_precondition"],
  resume: ["ok", "aborted", "failed_precondition"],
  // FAILED_PRECONDITION: it is deleted, or has no record yet.
  fork: ["ok", "aborted", "failed_precondition"],
  delete: ["ok", "aborted"],
  get: ["ok"],
};

/** How often each call is made, in parts of a hundred. */
const WEIGHTS: readonly (readonly [call: string, parts: number])[] = [
  ["exec", 42],
  ["cancel", 16],
  ["suspend", 13],
  ["resume", 13],
  ["fork", 11],
  ["get", 4],
  ["delete", 1],
];

/** One session that is raced for, and what its racers were told. */
class Round {
  readonly uid: string;
  readonly endedTurns = new Set<string>();
  readonly children: { readonly uid: string; readonly atSeq: number }[] = [];
  executionId = "";
  lastSeq = 1n;
  deleted = false;

  constructor(uid: string) {
    this.uid = uid;
  }
}

async function answerOf(call: Promise<unknown>): Promise<Answer> {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (error instanceof HoldfastError) return error.code;
    throw error;
  }
}

/** Makes one call of the round and keeps what it tells. */
async function ask(client: Client, round: Round, call: string, random: SeededRandom): Promise<unknown> {
  const session = client.session(round.uid);
  switch (call) {
    case "exec": {
      const harness = random.below(2) === 0 ? "echo" : "chat";
      const turn = session.exec({ inputs: "go", harness }, { reconnect: false });
      for await (const item of turn) if (item.kind === "record") round.executionId = turn.executionId ?? "";
      round.endedTurns.add(turn.executionId ?? "");
      round.lastSeq = turn.lastSeq;
      return turn.end;
    }
    case "cancel":
      return session.cancel(random.below(2) === 0 ? {} : { executionId: round.executionId });
    case "suspend":
      return session.suspend();
    case "resume":
      return session.resume();
    case "fork": {
      const atSeq = random.below(2) === 0 ? 0 : 1 + random.below(Number(round.lastSeq));
      for (const child of await session.fork({ atSeq, count: 2 }))
        round.children.push({ uid: child.metadata!.uid, atSeq: Number(child.forkSeq) });
      return undefined;
    }
    case "delete":
      await session.delete();
      round.deleted = true;
      return undefined;
    default:
      return session.get();
  }
}

function chosen(random: SeededRandom): string {
  let left = random.below(100);
  for (const [call, parts] of WEIGHTS) {
    if (left < parts) return call;
    left -= parts;
  }
  return "get";
}

async function journalOf(client: Client, uid: string): Promise<readonly Uint8Array[]> {
  return Array.fromAsync(client.sessions.replayBytes(uid));
}

/** Verifies one journal and returns its records. */
function verified(uid: string, bytes: readonly Uint8Array[]): readonly LogRecord[] {
  const verifier = createChainVerifier(nodeDigest);
  verifier.pushPage(bytes);
  expect(verifier.finish(), `the chain of ${uid}`).toMatchObject({ kind: "intact" });
  const records = bytes.map((each) => fromBinary(LogRecordSchema, each));
  expect(grammarFault(records), `the order of ${uid}`).toBeUndefined();
  return records;
}

/** Everything that must hold of a session after it was raced for. Returns how many turns of it ended. */
async function check(client: Client, round: Round): Promise<number> {
  const bytes = await journalOf(client, round.uid);
  const records = verified(round.uid, bytes);
  expect((await client.sessions.get(round.uid)).lastSeq).toBe(BigInt(bytes.length));
  const ends = new Set(records.flatMap(({ event }) => (event?.body.case === "end" ? [event.executionId] : [])));
  for (const executionId of round.endedTurns) expect(ends, "a turn whose end its client was told").toContain(executionId);
  const last = records.at(-1)?.event?.body;
  if (round.deleted) expect(last).toMatchObject({ case: "lifecycle", value: { kind: Lifecycle_Kind.LIFECYCLE_DELETE } });
  for (const child of round.children) {
    const own = await journalOf(client, child.uid);
    verified(child.uid, own);
    for (let index = 0; index < child.atSeq; index++) expect(Buffer.compare(own[index]!, bytes[index]!)).toBe(0);
    expect(own).toHaveLength(child.atSeq + 1);
  }
  return ends.size;
}

describe("clients that race for a session", () => {
  it(
    `get answers that the contract allows, and leave a journal that is right, for ${RACE_SECONDS} s`,
    { timeout: (RACE_SECONDS * 3 + 120) * 1_000 },
    async () => {
      await using models = await startModelServer();
      const env = { OPENAI_BASE_URL: models.openAiBaseUrl, OPENAI_API_KEY: "sk-test", HOLDFAST_LOG_LEVEL: "error" };
      const server = await serve(newDataFolder(), { env });
      const clients = Array.from({ length: CLIENTS }, () => createClient({ transport: createNodeTransport({ address: server.url }) }));
      const [first] = clients as [Client];
      const seen = new Map<string, number>();
      const refused: string[] = [];
      const endsAt = performance.now() + RACE_SECONDS * 1_000;
      let turns = 0;
      for (let rounds = 0; performance.now() < endsAt; rounds++) {
        const { metadata } = await first.sessions.create({ model: "gpt-x" });
        const round = new Round(metadata!.uid);
        const roundEndsAt = Math.min(endsAt, performance.now() + ROUND_MS);
        await Promise.all(
          clients.map(async (client, index) => {
            const random = new SeededRandom(rounds * CLIENTS + index);
            // After the deletion each racer makes a few more calls: they are told so.
            for (let after = 0; performance.now() < roundEndsAt && after < 5; after += round.deleted ? 1 : 0) {
              const call = chosen(random);
              const answer = await answerOf(ask(client, round, call, random));
              seen.set(`${call} ${answer}`, (seen.get(`${call} ${answer}`) ?? 0) + 1);
              if (!ALLOWED[call]!.includes(answer)) refused.push(`${call}: ${answer}`);
            }
          }),
        );
        turns += await check(first, round);
      }
      for (const client of clients) await client[Symbol.asyncDispose]();
      expect((await server.end("SIGTERM")).exitCode).toBe(0);
      const table = Object.fromEntries([...seen].toSorted(([left], [right]) => (left < right ? -1 : 1)));
      if (process.env["HOLDFAST_RACE_SECONDS"] !== undefined) console.log(turns, "turns ended;", table);
      expect(refused).toEqual([]);
      // The race was one: each call went well and turns were refused because others ran.
      for (const [call] of WEIGHTS) if (call !== "delete") expect(table[`${call} ok`], call).toBeGreaterThan(0);
      expect(table["exec aborted"]).toBeGreaterThan(0);
      expect(turns).toBeGreaterThan(0);
    },
  );
});

describe("the checker of a journal's order", () => {
  const event = (executionId: string, body: Parameters<typeof create<typeof EventSchema>>[1]) => ({ executionId, ...body });
  const start = (id: string) => event(id, { body: { case: "executionStart", value: {} } });
  const input = (id: string) => event(id, { body: { case: "message", value: {} } });
  const end = (id: string) => event(id, { body: { case: "end", value: {} } });
  const error = (id: string) => event(id, { body: { case: "error", value: {} } });
  const lifecycle = (kind: Lifecycle_Kind) => event("", { body: { case: "lifecycle", value: { kind } } });
  const fault = (...events: ReturnType<typeof event>[]) =>
    grammarFault(events.map((each, index) => create(LogRecordSchema, { seq: BigInt(index + 1), event: create(EventSchema, each) })));
  const { LIFECYCLE_SUSPEND: SUSPEND, LIFECYCLE_RESUME: RESUME, LIFECYCLE_DELETE: DELETE, LIFECYCLE_FORK: FORK } = Lifecycle_Kind;

  it("finds nothing wrong with what is right", () => {
    expect(
      fault(start("a"), input("a"), end("a"), lifecycle(SUSPEND), lifecycle(RESUME), start("b"), end("b"), lifecycle(DELETE)),
    ).toBeUndefined();
    expect(fault(start("a"), error("a"), input("a"), end("a"))).toBeUndefined();
    expect(fault(start("a"), error("a"), lifecycle(SUSPEND), start("b"), end("b"))).toBeUndefined();
    expect(fault(start("a"), lifecycle(FORK), start("b"), end("b"))).toBeUndefined();
  });

  it.each<[string, ReturnType<typeof event>[]]>([
    ["a turn begins before", [start("a"), start("b")]],
    ["not open", [start("a"), input("b")]],
    ["not open", [input("a")]],
    ["not open", [start("a"), end("b")]],
    ["not open", [start("a"), end("a"), end("a")]],
    ["a second time", [start("a"), end("a"), start("a")]],
    ["suspended inside a turn", [start("a"), lifecycle(SUSPEND)]],
    ["follows the deletion", [lifecycle(DELETE), start("a")]],
  ])("finds: %s", (what, events) => expect(fault(...events)).toContain(what));
});
