/** Anything that a client of the interactive door may say, sensible or not. */

import type { Saying } from "../../src/testing/door-client.ts";
import type { Dice } from "../../src/testing/dice.ts";
import { physicalTool, pureTool } from "./door.ts";

/** An id that may be one that is waited for. */
export function anyId(dice: Dice, waitedFor: readonly string[]): string {
  return dice.pick(["", "nobody", `${waitedFor[0] ?? "c1"}\n`, "x".repeat(dice.pick([10, 2_000])), "\u{1f6aa}", ...waitedFor]);
}

/** A text; some of them do something to the models that fuzzes have. */
export function anyText(dice: Dice, words: readonly string[] = []): string {
  return dice.pick(["", "go", "größer 🚪", "x".repeat(dice.pick([10, 10_000, 200_000])), "\u0000", "{}", ...words]);
}

export function anyTools(dice: Dice) {
  return dice.pick([
    [],
    [pureTool("look")],
    [pureTool("look"), physicalTool("push")],
    [{ name: anyText(dice) }],
    [pureTool("look"), pureTool("look")],
    [
      pureTool("odd", {
        parametersSchema: dice.pick([{ type: "object" }, { type: 9 }, { $ref: "#/nowhere" }]),
        timeoutMs: dice.pick([0, 1, 4_294_967_295]),
      }),
    ],
  ]);
}

export interface SayingOptions {
  /** Ids of calls that may wait for an answer. */
  readonly ids: readonly string[];
  /** Texts that users say. */
  readonly words?: readonly string[] | undefined;
}

export function anySaying(dice: Dice, { ids, words }: SayingOptions): Saying {
  const id = (): string => anyId(dice, ids);
  const text = (): string => anyText(dice);
  switch (dice.below(14)) {
    case 0:
      return {
        case: "start",
        value: { environmentId: dice.pick(["", "default", text()]), tools: anyTools(dice), projectContext: [text()] },
      };
    case 1:
      return {
        case: "start",
        value: { history: [{ role: dice.pick(["user", "robot"]), parts: [{ part: { case: "text", value: { text: text() } } }] }] },
      };
    case 2:
    case 3:
    case 4:
      return {
        case: "userMessage",
        value: {
          content: anyText(dice, words),
          messageId: id(),
          tools: anyTools(dice),
          aiMode: dice.pick(["react", "ooda", "", text()]),
        },
      };
    case 5:
    case 6:
      return {
        case: "toolResult",
        value: {
          toolCallId: id(),
          success: dice.below(2) === 0,
          result: text(),
          exitCode: dice.pick([0, -1, 2_147_483_647]),
          durationMs: dice.pick([0n, -1n, 2n ** 62n]),
        },
      };
    case 7:
    case 8:
      return { case: "permissionDecision", value: { toolCallId: id(), approved: dice.below(2) === 0 } };
    case 9:
      return { case: "registerTools", value: { source: dice.pick(["", "sim", text()]), tools: anyTools(dice), systemContext: text() } };
    case 10:
      return {
        case: "feedback",
        value: { sessionId: dice.pick(["", id()]), messageId: id(), rating: dice.pick(["up", "down", "meh"]) },
      };
    case 11:
      return { case: "cancelTurn", value: { reason: text() } };
    case 12:
      return dice.below(8) === 0 ? { case: "cancelSession", value: { reason: text() } } : { case: "ping", value: {} };
    default:
      return { case: "ping", value: {} };
  }
}
