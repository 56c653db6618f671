import { describe, expect, it } from "vitest";
import { Dice } from "../../testing/dice.ts";
import { anySaying } from "../../../e2e/support/door-sayings.ts";
import { doorWorld, environmentWith, physicalTool, pureTool, type DoorStore } from "../../../e2e/support/door.ts";
import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import { UsageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { ModelChunk } from "../../spi/index.ts";
import { saying } from "../../testing/agent-world.ts";
import type { DoorClient } from "../../testing/door-client.ts";
import type { DoorHost } from "../../testing/door-world.ts";
import { TestModel } from "../../testing/host.ts";

/** Every code that a conversation may say. */
const CODES: ReadonlySet<string> = new Set([
  "no_session",
  "already_started",
  "turn_in_progress",
  "no_active_turn",
  "unknown_tool_call",
  "invalid_argument",
  "model_error",
  "agent_error",
  "taken_over",
]);
/** In the normal run; FUZZ_MESSAGES has more of them. */
const MESSAGES = Number(process.env["FUZZ_MESSAGES"] ?? 2_000);
const PER_SESSION = 50;
/** Of the calls that the model makes. */
const IDS = ["c1", "c2", "c3"];

/** A model that calls tools, talks, fails, and is quiet once it is told to be. */
function whimsicalModel(dice: Dice, whims: { on: boolean }): TestModel {
  return new TestModel(async function* (_request, signal): AsyncGenerator<ModelChunk, void, undefined> {
    const whim = whims.on ? dice.below(8) : 0;
    if (whim === 1) throw new HoldfastError(dice.pick(["unavailable", "internal", "invalid_argument"]), "model: secret");
    if (whim === 2) {
      await new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    }
    const calls =
      whim > 3
        ? (
            [
              ["look", "c1", {}],
              [dice.pick(["push", "look", "none"]), "c2", {}],
            ] as const
          ).slice(0, dice.below(3))
        : [];
    yield { kind: "text", partIndex: 0, text: "so " };
    const usage = create(UsageSchema, { model: "m", inputTokens: 1n, outputTokens: 1n });
    yield { kind: "completed", response: { message: saying({ text: "so what", calls }), usage }, facts: {} };
  });
}

/** One session's worth of nonsense, then a turn like any other. */
async function storm(store: DoorStore, seed: number): Promise<void> {
  const dice = new Dice(seed);
  const whims = { on: true };
  await using at = await doorWorld(store, {
    models: whimsicalModel(dice, whims),
    environments: [
      environmentWith({ permissions: [{ tool: dice.pick(["look", "push", "*"]), policy: dice.pick(["allow", "require_confirmation"]) }] }),
    ],
  });
  let host = at.host();
  let client = await begun(host);
  const { session } = client;
  for (let said = 0; said < PER_SESSION; said++) {
    const whim = dice.below(20);
    if (whim === 0) client.garble();
    else if (whim === 1) client.sayEmpty();
    else client.say(anySaying(dice, { ids: IDS }));
    if (dice.below(4) === 0) at.ports.clock.advance(dice.pick([10, 500, 130_000]));
    if (dice.below(3) > 0 && client.end === undefined) continue;
    await settled(client);
    if (client.end === undefined && dice.below(6) > 0) continue;
    if (dice.below(2) === 0) await client.cut();
    if (dice.below(3) === 0) {
      await host[Symbol.asyncDispose]();
      host = at.host();
    }
    check(client, seed);
    client = host.client({ session, ...(dice.below(2) === 0 ? {} : { fromSeq: dice.below(client.seq + 1) }) });
  }
  await settled(client);
  check(client, seed);
  whims.on = false;
  await usable(host, session);
  check(client, seed);
  expect((await at.checks(session)).filter((outcome) => outcome !== "same")).toEqual([]);
  await host[Symbol.asyncDispose]();
}

async function begun(host: DoorHost): Promise<DoorClient> {
  const client = host.client();
  client.say({ case: "start", value: { tools: [pureTool("look"), physicalTool("push")] } });
  await client.next("sessionStarted");
  return client;
}

/** Everything that was said has been answered, or the stream has ended. */
async function settled(client: DoorClient): Promise<void> {
  client.say({ case: "ping", value: {} });
  await client.next("pong").catch(() => undefined);
}

/** Whatever happened before: a new client has a turn. */
async function usable(host: DoorHost, session: string): Promise<void> {
  const client = host.client({ session });
  await client.next("sessionStarted");
  client.say({ case: "cancelTurn", value: {} });
  // A turn that was begun over an earlier stream may still run.
  for (let attempt = 0, refused = -1; refused < client.all("error").length; attempt++) {
    refused = client.all("error").length;
    if (attempt > 0) await new Promise<void>((resolve) => setTimeout(resolve, 1));
    client.say({ case: "userMessage", value: { content: "still there?", messageId: `last-${attempt}`, tools: [pureTool("look")] } });
    client.say({ case: "ping", value: {} });
    await client.next("pong");
    if (attempt > 500) throw new Error(`no turn can be begun: ${client.story().join(", ").slice(-500)}`);
  }
  await client.next("turnComplete", ({ messageId, stopReason }) => messageId.startsWith("last-") && stopReason === "end_turn");
  await client.cut();
}

function check(client: DoorClient, seed: number): void {
  expect({ seed, end: client.end?.error }).toEqual({ seed, end: undefined });
  for (const { code, message } of client.all("error")) {
    expect({ seed, code, known: CODES.has(code) }).toEqual({ seed, code, known: true });
    expect(message).not.toMatch(/secret/);
  }
  const ids = new Set(client.all("turnComplete").map(({ messageId }) => messageId));
  expect(ids.has("")).toBe(false);
}

describe("any sequence of messages", () => {
  it.each([
    ["memory", MESSAGES * 0.75],
    ["sqlite", MESSAGES * 0.25],
  ] as const)(
    "over %s is answered with documented errors, hangs nothing, and leaves a session that works",
    { timeout: MESSAGES * 60 },
    async (store, messages) => {
      for (let seed = 1; seed <= messages / PER_SESSION; seed++) await storm(store, seed);
    },
  );
});
