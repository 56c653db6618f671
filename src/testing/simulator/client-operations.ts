/** What clients do: one call each, at some host, about some session. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, type Seq, type SessionUid } from "../../base/index.ts";
import type { ExecInvocation, RunningTurn } from "../../controller/index.ts";
import { ApprovalRefSchema, IdentityRefSchema, Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import { ComputeState, DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { SessionRow, SessionSeed } from "../../journal/index.ts";
import { textMessage } from "../../spi/index.ts";
import { emptySeed } from "../host.ts";
import { violation } from "../invariants.ts";
import type { SeenAppend } from "../invariants/ledger.ts";
import { HARNESS_NAMES } from "./harness-shapes.ts";
import type { SimHost } from "./sim-host.ts";
import type { World } from "./world.ts";

/** Does something in a world. Returns once it has begun; what it began goes on by itself. */
export type Operation = (world: World, at?: Target) => void;

/** Where a client asks, and about what. */
export interface Target {
  readonly host: SimHost;
  readonly session: SessionUid;
}

/** A host that takes calls and a session that may exist; undefined where there is none. */
function target(world: World): Target | undefined {
  const host = world.dice.pick(world.up);
  if (host === undefined) return undefined;
  if (world.dice.chance(15)) return { host, session: "nobody" as SessionUid };
  // Mostly one of few that are there: a world in which everybody meets at the same sessions has more races.
  const there = world.sessions.filter((uid) => world.rules.has(uid) && !world.rules.isDeleted(uid));
  const session = world.dice.chance(850) ? world.dice.pick(there.slice(-4)) : world.dice.pick(world.sessions);
  return session === undefined ? undefined : { host, session };
}

function seedOf(world: World, harness: string): SessionSeed {
  const { dice } = world;
  const named = dice.chance(150);
  return {
    ...emptySeed(world.newSession(), world.time.clock.nowMs()),
    harness,
    name: named ? `name-${dice.below(4)}` : "",
    identity: dice.chance(300)
      ? create(IdentityRefSchema, { principal: "agent://simulated", issuer: "https://issuer.example" })
      : undefined,
    annotations: dice.chance(100) ? { why: "simulated" } : {},
  };
}

export const createSession: Operation = (world) => {
  const host = world.dice.pick(world.up);
  if (host === undefined) return;
  const seed = seedOf(world, world.dice.pick(HARNESS_NAMES) ?? "one-call");
  void world.call("create", host, seed.uid, { named: seed.name !== "" }, async () => {
    const outcome = await host.store.create(seed);
    if (outcome.kind !== "created") throw new HoldfastError("already_exists", `session: ${outcome.kind}`);
    world.shown.push(outcome.row);
    return `created ${seed.harness}`;
  });
};

/** A turn as some client may want it. */
function invocationOf(world: World, session: SessionUid): { readonly invocation: ExecInvocation; readonly unknownHarness: boolean } {
  const { dice } = world;
  const task = `c${dice.between(0, 3)} o${dice.between(0, 3)} t${dice.between(0, 2)} w${dice.between(1, 400)}`;
  const inputs = Array.from(
    {
      length: dice.weighted([
        [1, 0],
        [5, 1],
        [1, 3],
      ]),
    },
    (_, index) => textMessage("user", `${task} i${index}`),
  );
  const head = world.monitor.durableSeq(session);
  const unknownHarness = dice.chance(15);
  const invocation: ExecInvocation = {
    inputs,
    caller: dice.chance(200) ? create(IdentityRefSchema, { principal: "user://simulated" }) : undefined,
    harness: unknownHarness ? "nobody" : dice.chance(100) ? (dice.pick(HARNESS_NAMES) ?? "") : "",
    config: dice.chance(200) ? dice.bytes(5) : new Uint8Array(),
    resumeFromSeq: dice.chance(100) ? BigInt(dice.below(9)) : 0n,
    expectedLastSeq: dice.chance(200) ? (Math.max(0, head - dice.pick([0, 0, 0, 1])) as Seq) : undefined,
    deadlineMs: dice.chance(100) ? world.time.clock.nowMs() + dice.between(-50, 30_000) : undefined,
  };
  return { invocation, unknownHarness };
}

/** What the service does with an Exec: read the session, plan, begin. */
export const exec: Operation = (world, at = target(world)) => {
  if (at === undefined) return;
  const { host, session } = at;
  const { invocation, unknownHarness } = invocationOf(world, session);
  const { expectedLastSeq, deadlineMs } = invocation;
  const given = { unknownHarness, expectedLastSeq, deadline: deadlineMs !== undefined, inputs: invocation.inputs.length };
  void world.call("exec", host, session, given, async () => {
    const earlier = host.controller.running(session);
    const row = await existing(host, session);
    const plan = await host.controller.plan(row, invocation);
    const turn = await host.controller.begin(session, plan);
    if (earlier !== undefined && !world.settled.has(earlier)) {
      world.ledger.found.push(violation("answers", { session, seq: turn.startSeq }, "a turn began while another one ran at the same host"));
    }
    if (deadlineMs !== undefined) expectEnd(world, host, turn, deadlineMs);
    if (expectedLastSeq !== undefined && ![1, 2].includes(turn.startSeq - expectedLastSeq)) {
      world.ledger.found.push(
        violation("I6", { session, seq: turn.startSeq }, `a turn that expected last_seq ${expectedLastSeq} began there`),
      );
    }
    world.follow(turn, host, { continues: plan.continues });
    if (plan.continues) world.count("exec continues");
    return plan.continues ? `goes on at ${turn.startSeq}` : `began ${plan.harness.name} at ${turn.startSeq}`;
  });
};

/** Long enough for a turn to be cancelled over the worst road. */
const CANCEL_MS = 90_000;

/** A turn does not run on long after its deadline, unless its host's clock was set or stood still meanwhile. */
function expectEnd(world: World, host: SimHost, turn: RunningTurn, deadlineMs: number): void {
  const { skewMs } = host.life;
  world.time.clock.after(Math.max(0, deadlineMs - host.life.clock.nowMs()) + CANCEL_MS, () => {
    if (host.life.isDead || host.life.skewMs !== skewMs || world.settled.has(turn)) return;
    world.ledger.found.push(violation("progress", { session: turn.session }, "a turn runs on long after its deadline"));
  });
}

async function existing(host: SimHost, session: SessionUid): Promise<SessionRow> {
  const row = await host.store.get(session);
  if (row === undefined) throw new HoldfastError("not_found", "session: no session has this uid");
  return row;
}

export const resume: Operation = (world, at = target(world)) => {
  if (at === undefined) return;
  const { host, session } = at;
  void world.call("resume", host, session, {}, async () => {
    const { row, turn } = await host.controller.resume(session, undefined);
    world.shown.push(row);
    if (turn === undefined) return "nothing to resume";
    await world.monitor.refresh(session);
    if (world.startOf(session, turn.startSeq)?.harnessVersion !== host.version) {
      world.ledger.found.push(
        violation("answers", { session, seq: turn.startSeq }, "a turn was resumed with another version of its harness"),
      );
    }
    world.follow(turn, host);
    world.count("recovery");
    return `resumed the turn of ${turn.startSeq}`;
  });
};

/** Decides: mostly what waits, sometimes what does not. */
export const approve: Operation = (world, at = waiting(world)) => {
  if (at === undefined) return;
  const { host, session } = at;
  const { dice } = world;
  const evidence = world.of(session);
  const open = evidence.projections[evidence.lastSeq]?.openTurn;
  const approval = dice.pick(open?.approvals ?? []);
  const isWrong = dice.chance(100) || approval === undefined;
  const ref = create(ApprovalRefSchema, {
    executionId: open?.executionId ?? "none",
    toolCallId: approval?.toolCallId ?? "none",
    requestSeq: BigInt(isWrong ? dice.between(1, 9) : approval.requestSeq),
  });
  const forkSeq = world.ledger.forks.find(({ children }) => children.includes(session))?.atSeq ?? 0;
  const isOpenRequest = !isWrong && approval.decision === undefined && approval.requestSeq > forkSeq;
  const approved = dice.chance(700);
  void world.call("approve", host, session, { isOpenRequest }, async () => {
    const { row, decision } = await host.controller.approve({ session, ref, approved, reason: "", actor: undefined });
    world.shown.push(row);
    await world.monitor.refresh(session);
    const body = world.of(session).at(decision.seq)?.event.body;
    if (body?.case !== "approvalResult" || body.value.requestSeq !== ref.requestSeq || body.value.approved !== approved) {
      world.ledger.found.push(
        violation("I8", { session, seq: decision.seq }, "a client was told of a decision that is not in the journal"),
      );
    }
    return `${approved ? "approved" : "denied"} ${ref.toolCallId}`;
  });
};

/** A session that waits for a decision, mostly. */
function waiting(world: World): Target | undefined {
  const host = world.dice.pick(world.up);
  const session = world.dice.pick(world.sessions.filter((uid) => world.rules.has(uid) && world.waits(uid)));
  return host === undefined || session === undefined || world.dice.chance(100) ? target(world) : { host, session };
}

export const cancel: Operation = (world, at = target(world)) => {
  if (at === undefined) return;
  const { host, session } = at;
  const open = world.of(session).projections.at(-1)?.openTurn?.executionId;
  const executionId = world.dice.chance(300) ? (open ?? "none") : "";
  void world.call("cancel", host, session, { executionId }, async () => {
    const row = await host.controller.cancel({ session, executionId, reason: "USER" });
    world.shown.push(row);
    if (open !== undefined && row.projection.openTurn?.executionId === open) {
      world.ledger.found.push(violation("answers", { session }, "cancel was answered well, and the turn is open still"));
    }
    return "cancelled";
  });
};

export const suspend: Operation = (world, at = target(world)) => {
  if (at === undefined) return;
  const { host, session } = at;
  void world.call("suspend", host, session, {}, async () => {
    const holds = world.rules.holder(session, world.time.clock.nowMs()) === host.id;
    const before = holds ? host.controller.running(session) : undefined;
    const { appends } = world.ledger;
    const from = appends.length;
    const row = await host.controller.suspend(session, undefined);
    world.shown.push(row);
    // A turn that parks suspends its session itself, and is about to end then: that one is no other's doing.
    const suspendedHere = appends.slice(from).some((seen) => seen.session === session && seen.host === host.id && isSuspension(seen));
    if (before !== undefined && !world.settled.has(before) && suspendedHere) {
      world.ledger.found.push(violation("answers", { session, seq: before.startSeq }, "a session was suspended while a turn of it ran"));
    }
    return row.projection.computeState === ComputeState.COMPUTE_COLD ? "cold" : "overtaken";
  });
};

/** A suspension that was asked for and recorded. */
function isSuspension({ answer, writer, events }: SeenAppend): boolean {
  if (answer !== "appended" || writer.kind !== "claim") return false;
  return events.some(({ body }) => body.case === "lifecycle" && body.value.kind === Lifecycle_Kind.LIFECYCLE_SUSPEND);
}

export const remove: Operation = (world, at = target(world)) => {
  if (at === undefined) return;
  const { host, session } = at;
  void world.call("delete", host, session, {}, async () => {
    const row = await host.controller.delete(session, undefined);
    world.shown.push(row);
    if (row.projection.deletionState === DeletionState.DELETION_ACTIVE) {
      world.ledger.found.push(violation("answers", { session }, "delete was answered well, and the session is not deleted"));
    }
    return "deleted";
  });
};

export const fork: Operation = (world, at = target(world)) => {
  if (at === undefined) return;
  const { host, session } = at;
  const { dice } = world;
  const head = world.monitor.durableSeq(session);
  const atSeq = (dice.chance(300) ? 0 : dice.between(0, head + (dice.chance(100) ? 2 : 0))) as Seq;
  const count = dice.pick([1, 1, 2, 3]);
  const seeds = Array.from({ length: count }, () => seedOf(world, ""));
  const named = seeds.some(({ name }) => name !== "");
  void world.call("fork", host, session, { atSeq, named }, async () => {
    const children = (parent: SessionRow): SessionSeed[] => seeds.map((seed) => ({ ...seed, harness: parent.seed.harness }));
    const rows = await host.controller.fork({ parent: session, atSeq, children });
    world.shown.push(...rows);
    const right = rows.length === count && rows.every(({ parent }) => parent?.uid === session && (atSeq === 0 || parent.forkSeq === atSeq));
    if (!right) world.ledger.found.push(violation("answers", { session }, "a fork was answered with other children than were asked for"));
    return `forked ${rows.map((row) => world.nameOf(row.seed.uid)).join()} at ${rows[0]?.parent?.forkSeq}`;
  });
};

/** Several clients want something of one session in the same instant. */
export const crowd: Operation = (world) => {
  const at = target(world);
  if (at === undefined) return;
  const { session } = at;
  const wants = [exec, exec, cancel, cancel, resume, suspend, approve, fork, remove] as const;
  for (let count = world.dice.between(2, 4); count > 0; count--) {
    const host = world.dice.pick(world.up);
    const want = wants[world.dice.below(world.dice.chance(100) ? wants.length : wants.length - 1)];
    if (host !== undefined && want !== undefined) want(world, { host, session });
  }
};

/** Pages through the listing; whoever was there all the time is in it, once. */
export const list: Operation = (world) => {
  const host = world.dice.pick(world.up);
  if (host === undefined) return;
  const steady = world.sessions.filter((session) => world.rules.has(session) && !world.rules.isDeleted(session));
  const gone = world.sessions.filter((session) => world.rules.isDeleted(session));
  void world.call("list", host, undefined, {}, async () => {
    const rows: SessionRow[] = [];
    for (let more = true, after: Parameters<typeof host.store.list>[0]["after"]; more; more = after !== undefined) {
      const page = await host.store.list({ project: "", limit: 3, after });
      rows.push(...page.rows);
      after = page.next;
    }
    const uids = rows.map((row) => row.seed.uid);
    world.shown.push(...rows);
    const missing = steady.find((session) => !uids.includes(session) && !world.rules.isDeleted(session));
    const wrong = uids.find((uid, index) => uids.indexOf(uid) !== index || gone.includes(uid));
    if (missing !== undefined) world.ledger.found.push(violation("answers", { session: missing }, "a listing leaves out a session"));
    if (wrong !== undefined)
      world.ledger.found.push(violation("answers", { session: wrong }, "a listing has a session twice, or a deleted one"));
    return `listed ${rows.length}`;
  });
};
