/** The shapes of turns that spawn, and what must be true of spawners and workers wherever the host dies. */

import { EventKind } from "../../gen/agentsessions/v1/common_pb.ts";
import { spawnCallOf, workerUid } from "../../service/index.ts";
import { messageText, type ToolResult } from "../../spi/index.ts";
import type { SessionEvidence } from "../invariants.ts";
import { toolCallsOf } from "../invariants/tool-evidence.ts";
import type { World } from "../simulator/world.ts";
import type { SweepClient, TurnShape } from "./turn-shapes.ts";

/** Every shape that spawns. */
export const SPAWN_SHAPES: readonly TurnShape[] = [
  {
    name: "two workers at once",
    harness: "spawner",
    agents: ["converser", "toolsmith"],
    ends: ["COMPLETED"],
    drive: (client) => client.exec(["s:converser s:toolsmith"]),
    judge: answeredOnce,
  },
  {
    name: "a worker's worker",
    harness: "spawner",
    agents: ["spawner", "writer"],
    ends: ["COMPLETED"],
    drive: (client) => client.exec(["s:spawner/writer"]),
    judge: answeredOnce,
  },
  {
    name: "a worker that waits for a person",
    harness: "spawner",
    agents: ["asker"],
    ends: ["COMPLETED"],
    drive: approved,
    judge: answeredOnce,
  },
  {
    name: "cancelled while its worker runs",
    harness: "spawner",
    agents: ["sleeper", "spawner"],
    ends: ["CANCELED", "COMPLETED"],
    drive: cancelled,
    judge: handedDown,
    // Where the cancel was not recorded the turn comes to its second call, and may be cut off in its first.
    extraCallsMax: 2,
  },
];

async function approved(client: SweepClient): Promise<void> {
  const turn = await client.begin(["s:asker"]);
  let isOver = false;
  void turn.outcome.then(() => (isOver = true));
  await looking(client, async () => {
    for (const worker of await client.world.findSpawned()) await client.decide(true, { of: worker });
    return isOver;
  });
}

async function cancelled(client: SweepClient): Promise<void> {
  const open = async (): Promise<number> => (await client.world.journal.list({ limit: 10, openTurn: true })).rows.length;
  await client.begin(["s:spawner/sleeper"]);
  await looking(client, async () => (await open()) === 3);
  await client.host.controller.cancel({ session: client.session, executionId: "", reason: "USER" });
  await looking(client, async () => (await open()) === 0);
}

/** Looks now and then until it `is` so, or the client's host is dead. */
async function looking({ world, host }: SweepClient, is: () => Promise<boolean>): Promise<void> {
  while (!host.life.isDead && !(await is())) await world.time.clock.sleep(5);
}

/** Each call spawned one session, whose first turn ran the call's prompt, once, and whose last words are the call's result. */
function answeredOnce(world: World): readonly string[] {
  return spawnsOf(world).flatMap(({ call, result, worker, name }) => {
    if (result === undefined) return [`${name} has no result`];
    const turn = firstTurn(worker);
    const prompts = worker.records.filter(({ event }) => textOf(event) === call.args?.["prompt"]);
    const lastWords = turn.flatMap(({ event }) => (isOutput(event) ? [textOf(event)] : [])).at(-1);
    const said = result.content.map(({ part }) => (part.case === "text" ? part.value.text : "")).join("");
    return [
      ...(prompts.length === 1 ? [] : [`${name}: its prompt was run ${prompts.length} times`]),
      ...(result.output?.["state"] === "COMPLETED" && said === lastWords ? [] : [`${name}: its result is not what it said`]),
    ];
  });
}

/** A spawner's turn that was cancelled leaves no worker that went on. */
function handedDown(world: World): readonly string[] {
  return spawnsOf(world).flatMap(({ spawner, callSeq, worker, name }) => {
    const ended = endAfter(spawner, callSeq);
    const own = firstTurn(worker).at(-1)?.event.body;
    const state = own?.case === "end" ? own.value.state : undefined;
    if (ended === "CANCELED") return state === "CANCELED" || worker.records.length === 0 ? [] : [`${name}: its turn is ${state ?? "open"}`];
    return state === "COMPLETED" ? [] : [`${name}: its turn is ${state ?? "open"} where its spawner's is ${ended ?? "open"}`];
  });
}

interface SeenSpawn {
  readonly spawner: SessionEvidence;
  readonly call: ReturnType<typeof toolCallsOf>[number]["call"];
  readonly callSeq: number;
  readonly result: ToolResult | undefined;
  readonly worker: SessionEvidence;
  readonly name: string;
}

function spawnsOf(world: World): readonly SeenSpawn[] {
  return [...world.monitor.sessions.values()].flatMap((spawner) =>
    toolCallsOf(spawner).flatMap(({ call, callSeq, result }) => {
      const event = spawner.at(callSeq)?.event;
      if (event === undefined || spawnCallOf(event) === undefined) return [];
      const worker = world.of(workerUid(spawner.session, call.idempotencyKey, world.digest));
      return [{ spawner, call, callSeq, result: result?.value, worker, name: `${world.nameOf(spawner.session)} ${call.id}` }];
    }),
  );
}

type SeenRecord = SessionEvidence["records"][number];
type SeenEvent = SeenRecord["event"];

/** The records of a session's first turn, up to its END. */
function firstTurn({ records }: SessionEvidence): readonly SeenRecord[] {
  const end = records.findIndex(({ event }) => event.body.case === "end");
  return end < 0 ? records : records.slice(0, end + 1);
}

function endAfter({ records }: SessionEvidence, seq: number): string | undefined {
  const body = records.slice(seq).find(({ event }) => event.body.case === "end")?.event.body;
  return body?.case === "end" ? body.value.state : undefined;
}

function isOutput({ body, kind }: SeenEvent): boolean {
  return body.case === "message" && kind === EventKind.EVENT_OUTPUT;
}

function textOf({ body }: SeenEvent): string | undefined {
  return body.case === "message" ? messageText(body.value) : undefined;
}
