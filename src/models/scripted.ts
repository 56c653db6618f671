/**
 * The scripted model: says what its script says. It needs no key and no network.
 *
 * It keeps nothing between calls: which entry answers is told by the request alone, so that replays, restarts and forks get what the first run
 * got. Time passes by the clock that it is given.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import type { Clock } from "../base/ports.ts";
import { MessageSchema, PartSchema, ReasoningPartSchema, ToolCallSchema, type Part } from "../gen/agentsessions/v1/common_pb.ts";
import { messageText, type Message, type ModelChunk, type ModelProvider, type ModelRequest } from "../spi/index.ts";
import { callIdsOf, resultText } from "./content.ts";
import { abortErrorOf } from "./fault.ts";
import { parseScript, type Script, type ScriptEntry } from "./script.ts";
import { usageOf, wordCounts } from "./usage.ts";

/** The provider's name, also in reasoning parts. */
const SCRIPT = "script";

/** A model that plays a script: a value, or a text of YAML or JSON. Throws INVALID_ARGUMENT for a text that is no script. */
export function createScriptedModel(script: Script | string, options: { readonly clock: Clock }): ModelProvider {
  const { completions } = typeof script === "string" ? parseScript(script) : script;
  return {
    name: SCRIPT,
    complete: (request, { signal }) => play(completions, request, { clock: options.clock, signal }),
  };
}

interface PlayOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

async function* play(
  entries: readonly ScriptEntry[],
  request: ModelRequest,
  options: PlayOptions,
): AsyncGenerator<ModelChunk, void, undefined> {
  const scene = sceneOf(request.messages);
  const entry = entries.find((candidate) => matches(candidate, scene));
  if (entry === undefined) {
    throw new HoldfastError("failed_precondition", `model: the script has no completion for turn ${scene.turn}, step ${scene.step}`);
  }
  await pause(entry.delayMs, options);
  let partIndex = 0;
  if (entry.reasoning !== undefined) yield { kind: "reasoning", partIndex: partIndex++, text: entry.reasoning.text };
  for (const [index, text] of entry.text.entries()) {
    if (index > 0) await pause(entry.pieceDelayMs, options);
    yield { kind: "text", partIndex, text };
  }
  if (entry.error !== undefined) throw new HoldfastError(entry.error.code, entry.error.message);
  await pause(0, options);
  const counts = { ...wordCounts(request, entry.text.join("")), ...entry.usage };
  const response = { message: messageOf(entry, scene, request), usage: usageOf(request.model, counts) };
  const stopReason = entry.stopReason ?? (entry.calls.length > 0 ? "tool_calls" : "stop");
  yield { kind: "completed", response, facts: { stopReason, attempts: 1 } };
}

async function pause(ms: number, { clock, signal }: PlayOptions): Promise<void> {
  if (ms > 0) await clock.sleep(ms, { signal }).catch(() => undefined);
  if (signal.aborted) throw abortErrorOf(signal);
}

/** Where in a session a request is. */
interface Scene {
  /** How often the user spoke: at the beginning, and after the assistant's words. */
  readonly turn: number;
  /** The assistant's messages since, and the one that is asked for. */
  readonly step: number;
  readonly user: string;
  /** The results that the request ends with; "" where it ends otherwise. */
  readonly results: string;
}

function sceneOf(messages: readonly Message[]): Scene {
  let turn = 0;
  let step = 1;
  let before = "";
  for (const { role } of messages) {
    if (role === "system") continue;
    if (role === "user" && (before === "" || before === "assistant")) {
      turn++;
      step = 1;
    }
    if (role === "assistant") step++;
    before = role;
  }
  const last = messages.at(-1);
  const user = messages.findLast((message) => message.role === "user");
  return { turn, step, user: user === undefined ? "" : messageText(user), results: last?.role === "tool" ? resultsOf(last) : "" };
}

function resultsOf(message: Message): string {
  return message.parts.map(({ part }) => (part.case === "toolResult" ? resultText(part.value) : "")).join("\n");
}

function matches({ on }: ScriptEntry, scene: Scene): boolean {
  if (on.turn !== undefined && on.turn !== scene.turn) return false;
  if (on.step !== undefined && on.step !== scene.step) return false;
  if (on.user !== undefined && !scene.user.includes(on.user)) return false;
  return on.result === undefined || scene.results.includes(on.result);
}

function messageOf(entry: ScriptEntry, scene: Scene, request: ModelRequest): Message {
  const parts: Part[] = [];
  if (entry.reasoning !== undefined) {
    const { text, opaque } = entry.reasoning;
    const value = create(ReasoningPartSchema, {
      provider: SCRIPT,
      modelId: request.model,
      summary: [textPart(text)],
      opaque: opaque === undefined ? { case: undefined } : { case: "opaqueBytes", value: new TextEncoder().encode(opaque) },
    });
    parts.push(create(PartSchema, { part: { case: "reasoning", value } }));
  }
  if (entry.text.length > 0) parts.push(textPart(entry.text.join("")));
  const taken = new Set(callIdsOf(request.messages));
  for (const [index, call] of entry.calls.entries()) {
    const id = freeId(call.id ?? `call_${scene.turn}_${scene.step}_${index + 1}`, taken);
    taken.add(id);
    parts.push(create(PartSchema, { part: { case: "toolCall", value: create(ToolCallSchema, { id, tool: call.tool, args: call.args }) } }));
  }
  return create(MessageSchema, { role: "assistant", parts });
}

/** A tool call's id is there once in a conversation. */
function freeId(wanted: string, taken: ReadonlySet<string>): string {
  let id = wanted;
  for (let count = 2; taken.has(id); count++) id = `${wanted}_${count}`;
  return id;
}

function textPart(text: string): Part {
  return create(PartSchema, { part: { case: "text", value: { text } } });
}
