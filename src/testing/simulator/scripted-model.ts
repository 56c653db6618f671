/** What the simulated model answers. No two answers are alike, as with a real one: an answer that is served twice shows. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, type Clock } from "../../base/index.ts";
import { MessageSchema, PartSchema, UsageSchema, type Part } from "../../gen/agentsessions/v1/common_pb.ts";
import type { Message, ModelChunk } from "../../spi/index.ts";
import type { ModelScript, ToolScript } from "../invariants.ts";
import type { Dice } from "../dice.ts";
import type { ModelMood, Weather } from "./weather.ts";

/** The model's script on one host. */
export function modelScript({
  weather,
  dice,
  clock,
}: {
  readonly weather: Weather;
  readonly dice: Dice;
  readonly clock: Clock;
}): ModelScript {
  return async function* (request, signal, call) {
    const mood = weather.mood();
    const chunks = mood === "streams" ? dice.between(2, 5) : 1;
    if (mood === "hangs") return yield* hanging(signal);
    for (let index = 0; index < chunks; index++) {
      await clock.sleep(weather.thinkMs(mood), { signal });
      yield { kind: "text", partIndex: 1, text: `${mood} ` };
    }
    if (mood === "fails")
      throw new HoldfastError(dice.pick(["unavailable", "resource_exhausted", "invalid_argument"]), `model: it refuses call ${call}`);
    if (mood === "breaks") throw new TypeError("a provider's bug");
    if (mood === "ends early") return;
    const usage = create(UsageSchema, { model: request.model, inputTokens: BigInt(request.messages.length), outputTokens: BigInt(call) });
    yield { kind: "completed", response: { message: answer(dice, mood, call), usage }, facts: { attempts: 1 } };
  };
}

/** What tools take, on one host. */
export function toolScript({
  weather,
  dice,
  clock,
}: {
  readonly weather: Weather;
  readonly dice: Dice;
  readonly clock: Clock;
}): ToolScript {
  return async (signal) => {
    const mood = weather.toolMood();
    if (mood === "hangs") await clock.sleep(3_600_000, { signal });
    if (mood === "instant") return;
    await clock.sleep(mood === "slow" ? dice.between(500, 20_000) : dice.between(1, 60), { signal });
    if (mood === "fails") throw new HoldfastError("unavailable", "tool: it cannot be done now");
  };
}

async function* hanging(signal: AbortSignal): AsyncGenerator<ModelChunk, void, undefined> {
  await new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Reasoning that must come back byte for byte, and a text. */
function answer(dice: Dice, mood: ModelMood, call: number): Message {
  const opaque = { case: "opaqueBytes" as const, value: dice.bytes(dice.between(0, 24)) };
  const text = mood === "lone surrogates" ? `answer ${call} \ud800` : `answer ${call}`;
  const parts: Part[] = [
    create(PartSchema, { part: { case: "reasoning", value: { provider: "simulated", modelId: "test", opaque, ordinal: call } } }),
    create(PartSchema, { part: { case: "text", value: { text } } }),
  ];
  return create(MessageSchema, { role: "assistant", parts });
}
