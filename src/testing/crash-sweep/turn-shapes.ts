/** The shapes of turns that are crashed at every write: what clients do, with which harness and which model. */

import type { Seq, SessionUid } from "../../base/index.ts";
import { approvalRefOf, ownApprovals, type ExecInvocation, type RunningTurn } from "../../controller/index.ts";
import type { EndState } from "../../journal/index.ts";
import { textMessage } from "../../spi/index.ts";
import { emptySeed } from "../host.ts";
import type { HarnessName } from "../simulator/harness-shapes.ts";
import type { SimHost } from "../simulator/sim-host.ts";
import type { ModelMood } from "../simulator/weather.ts";
import type { World } from "../simulator/world.ts";

/** One shape. */
export interface TurnShape {
  readonly name: string;
  readonly harness: HarnessName;
  /** What the model does in the first life; afterwards it answers quickly. Default `quick`. */
  readonly mood?: ModelMood | undefined;
  /** Whether a harness that may throw does so in the first life. */
  readonly throws?: boolean | undefined;
  /** How the turn may end, wherever the host dies. */
  readonly ends: readonly EndState[];
  /** What a client does; resolves when it is done. Default: one turn with one input. */
  readonly drive?: ((client: SweepClient) => Promise<void>) | undefined;
  /** The harnesses that its sessions may spawn. Default: none. */
  readonly agents?: readonly HarnessName[] | undefined;
  /** What else is wrong once everything has come to rest. */
  readonly judge?: ((world: World) => readonly string[]) | undefined;
  /** Model calls that a crash may cost more than an unfailed run: one for each session whose turn it can interrupt. Default 1. */
  readonly extraCallsMax?: number | undefined;
}

/** Marks the turns of a shape, so that their model calls can be counted. */
export const SHAPE_CONFIG = new Uint8Array([7]);

/** A client of the host that is going to die. None of its calls is answered after that. */
export class SweepClient {
  readonly world: World;
  readonly host: SimHost;
  readonly session: SessionUid;

  constructor(world: World, host: SimHost) {
    this.world = world;
    this.host = host;
    this.session = world.newSession();
  }

  async create(harness: string): Promise<void> {
    await this.host.store.create({ ...emptySeed(this.session, this.world.time.clock.nowMs()), harness });
  }

  async begin(inputs: readonly string[], more: Partial<ExecInvocation> = {}): Promise<RunningTurn> {
    const row = await this.host.store.get(this.session);
    if (row === undefined) throw new Error("the session is gone");
    const invocation: ExecInvocation = {
      inputs: inputs.map((text) => textMessage("user", text)),
      caller: undefined,
      harness: "",
      config: SHAPE_CONFIG,
      resumeFromSeq: 0n,
      expectedLastSeq: undefined,
      deadlineMs: undefined,
      ...more,
    };
    const plan = await this.host.controller.plan(row, invocation);
    const turn = await this.host.controller.begin(this.session, plan);
    this.world.follow(turn, this.host, { continues: plan.continues });
    return turn;
  }

  async exec(inputs: readonly string[], more: Partial<ExecInvocation> = {}): Promise<void> {
    await (
      await this.begin(inputs, more)
    ).outcome;
  }

  async resume(session = this.session): Promise<void> {
    const { turn } = await this.host.controller.resume(session, undefined);
    if (turn === undefined) return;
    this.world.follow(turn, this.host);
    await turn.outcome;
  }

  /** Decides the oldest call that waits, or the last one. */
  async decide(
    approved: boolean,
    { last = false, of = this.session }: { readonly last?: boolean; readonly of?: SessionUid } = {},
  ): Promise<void> {
    const row = await this.host.store.get(of);
    const waiting = row === undefined ? [] : ownApprovals(row).filter(({ decision }) => decision === undefined);
    const approval = last ? waiting.at(-1) : waiting[0];
    if (row === undefined || approval === undefined) throw new Error("nothing waits for a decision");
    const ref = approvalRefOf(row, approval);
    await this.host.controller.approve({ session: of, ref, approved, reason: "sweep", actor: undefined });
  }

  /** Resolves once a model has been asked. */
  async modelIsAsked(): Promise<void> {
    while (this.world.ledger.calls.length === 0) await this.world.time.clock.sleep(2);
  }

  /** Forks the session at its head; resolves with the child. */
  async fork(): Promise<SessionUid> {
    const children = () => [{ ...emptySeed(this.world.newSession(), this.world.time.clock.nowMs()), harness: "one-call" }];
    const [row] = await this.host.controller.fork({ parent: this.session, atSeq: 0 as Seq, children });
    if (row === undefined) throw new Error("there is no child");
    return row.seed.uid;
  }
}

/** Every shape. */
export const TURN_SHAPES: readonly TurnShape[] = [
  { name: "model only", harness: "one-call", ends: ["COMPLETED"] },
  { name: "several calls", harness: "converser", ends: ["COMPLETED"], drive: (client) => client.exec(["c3"]) },
  { name: "reported tools", harness: "worker", ends: ["COMPLETED"], drive: (client) => client.exec(["c2 o1 t2"]) },
  { name: "streaming", harness: "one-call", mood: "streams", ends: ["COMPLETED"], drive: streaming },
  { name: "model error", harness: "one-call", mood: "fails", ends: ["COMPLETED"] },
  { name: "harness error", harness: "flaky", throws: true, ends: ["COMPLETED"] },
  { name: "harness failure", harness: "failing", ends: ["FAILED"] },
  { name: "record limit", harness: "runaway", ends: ["FAILED"] },
  { name: "cancel", harness: "one-call", mood: "hangs", ends: ["CANCELED", "COMPLETED"], drive: cancelled },
  { name: "deadline", harness: "one-call", mood: "hangs", ends: ["CANCELED", "COMPLETED"], drive: overdue },
  { name: "deleted while it runs", harness: "one-call", mood: "hangs", ends: ["CANCELED", "COMPLETED"], drive: deleted },
  { name: "fork in the middle", harness: "one-call", mood: "slow", ends: ["COMPLETED"], drive: forked, extraCallsMax: 2 },
  { name: "cold session", harness: "converser", ends: ["COMPLETED"], drive: thawed },
  { name: "interrupted, suspended and resumed", harness: "hasty", throws: true, ends: ["COMPLETED"], drive: interrupted },
  { name: "history", harness: "historian", ends: ["COMPLETED"], drive: twice },
  { name: "several inputs", harness: "one-call", ends: ["COMPLETED"], drive: (client) => client.exec(["c1 a", "b", "c", "d"]) },
  { name: "tools", harness: "toolsmith", ends: ["COMPLETED"] },
  { name: "parallel tools", harness: "juggler", ends: ["COMPLETED"] },
  { name: "the same effects again", harness: "repeater", ends: ["COMPLETED"], drive: twice },
  { name: "approved", harness: "asker", ends: ["COMPLETED"], drive: (client) => decided(client, true) },
  { name: "denied", harness: "asker", ends: ["COMPLETED"], drive: (client) => decided(client, false) },
  { name: "parallel approvals", harness: "askers", ends: ["COMPLETED"], drive: decidedLastFirst },
  { name: "cancelled while it is parked", harness: "asker", ends: ["CANCELED", "COMPLETED"], drive: cancelledParked },
  { name: "decided and gone on by Exec", harness: "asker", ends: ["COMPLETED"], drive: goneOn },
  { name: "no input", harness: "writer", ends: ["COMPLETED"], drive: (client) => client.exec([]) },
];

async function decided(client: SweepClient, approved: boolean): Promise<void> {
  await client.exec(["c1"]);
  for (let count = 0; count < 2; count++) {
    await client.decide(approved);
    await client.resume();
  }
}

async function decidedLastFirst(client: SweepClient): Promise<void> {
  await client.exec([]);
  for (let count = 0; count < 3; count++) {
    await client.decide(count !== 1, { last: true });
    await client.resume();
  }
}

async function cancelledParked(client: SweepClient): Promise<void> {
  await client.exec(["c1"]);
  await client.host.controller.cancel({ session: client.session, executionId: "", reason: "USER" });
}

async function goneOn(client: SweepClient): Promise<void> {
  await client.exec(["c1"]);
  for (let count = 0; count < 2; count++) {
    await client.decide(true);
    await client.exec([]);
  }
}

async function streaming(client: SweepClient): Promise<void> {
  const turn = await client.begin(["c1"]);
  const until = turn.outcome.then(({ lastSeq }) => lastSeq);
  const records: { seq: Seq; contentHash: string }[] = [];
  client.world.ledger.streams.push({ session: client.session, fromSeq: turn.startSeq, records });
  for await (const item of client.host.controller.watch({ session: client.session, fromSeq: turn.startSeq, until })) {
    if (client.host.life.isDead) return;
    if (item.kind === "record") records.push({ seq: item.record.seq, contentHash: item.record.contentHash });
  }
}

async function cancelled(client: SweepClient): Promise<void> {
  await client.begin(["c1"]);
  await client.modelIsAsked();
  await client.host.controller.cancel({ session: client.session, executionId: "", reason: "USER" });
}

async function overdue(client: SweepClient): Promise<void> {
  await client.exec(["c1"], { deadlineMs: client.host.life.clock.nowMs() + 700 });
}

async function deleted(client: SweepClient): Promise<void> {
  await client.begin(["c1"]);
  await client.modelIsAsked();
  await client.host.controller.delete(client.session, undefined);
}

async function forked(client: SweepClient): Promise<void> {
  const turn = await client.begin(["c1"]);
  await client.modelIsAsked();
  const child = await client.fork();
  await Promise.all([turn.outcome, client.resume(child)]);
}

async function thawed(client: SweepClient): Promise<void> {
  await client.exec(["c1"]);
  await client.host.controller.suspend(client.session, undefined);
  await client.exec(["c2"]);
}

async function interrupted(client: SweepClient): Promise<void> {
  await client.exec(["c1"]);
  await client.host.controller.suspend(client.session, undefined);
  await client.resume();
}

async function twice(client: SweepClient): Promise<void> {
  await client.exec(["c1"]);
  await client.exec(["c1"]);
}
