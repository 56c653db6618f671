/** A server with environments for conversations, whose model plays a script, and a provider on a socket for what a script cannot see. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import type { Value } from "./python-client.ts";
import { newDataFolder, serve, type ServerProcess } from "./server-process.ts";

/** What the scripted model says to the words of a user: one entry for each asking of a turn, the last one for all that follow. */
const CONVERSATIONS: Readonly<Record<string, readonly object[]>> = {
  "Is the door open?": [
    {
      reasoning: "Somebody has to look.",
      text: ["Let me ", "look."],
      calls: [{ tool: "look", args: { at: "door" } }],
      usage: { inputTokens: 20, outputTokens: 10 },
    },
    { text: ["It is ", "ajar."], usage: { inputTokens: 30, outputTokens: 5 } },
  ],
  "Tell a story.": [{ text: ["Once ", "upon ", "a time."], pieceDelayMs: 400 }],
  "Think for long.": [{ text: "Well.", delayMs: 600_000 }],
  "Answer late.": [{ text: "Well.", delayMs: 16_000 }],
  "Wipe it.": [{ calls: [{ tool: "wipe", args: {} }] }, { text: "It stays." }],
  "Look twice.": [
    {
      calls: [
        { tool: "look", args: { at: "door" } },
        { tool: "look", args: { at: "window" } },
      ],
    },
    { text: "Both are shut." },
  ],
  "Use the simulator.": [
    { calls: [{ tool: "sim__step", args: {} }] },
    { on: { result: "stepped" }, text: "It stepped." },
    { text: "There is none." },
  ],
  "Move the arm.": [{ calls: [{ tool: "move", args: { to: 3 } }] }, { text: "I may not." }],
  // Of an agent that looks the newest words are what it saw.
  "the arm is at 1": [{ text: "I move it.", calls: [{ tool: "move", args: { to: 3 } }] }],
  "the arm is at 3": [{ text: "It is at 3." }],
  "both arms are at 1": [
    {
      delayMs: 30,
      calls: [
        { tool: "nudge", args: { arm: 1 } },
        { tool: "nudge", args: { arm: 2 } },
      ],
    },
  ],
  "one arm is at 2": [{ text: "One has moved." }],
  "Break.": [{ error: { code: "invalid_argument", message: "secret of the provider" } }],
  "Look around.": [
    {
      calls: [
        { tool: "spawn", args: { prompt: "Look at the north." } },
        { tool: "spawn", args: { prompt: "Look at the south." } },
      ],
    },
    { text: "Both have looked." },
  ],
  "Look at the north.": [{ calls: [{ tool: "spawn", args: { prompt: "Look at the hill." } }] }, { text: "A hill, and a house on it." }],
  "Look at the hill.": [{ text: "A house.", delayMs: 500 }],
  "Look at the south.": [{ error: { code: "invalid_argument" } }],
  "Be asked in vain.": [
    { calls: [{ tool: "look", args: {} }] },
    { on: { result: "did not answer" }, text: "Well.", delayMs: 600_000 },
    { text: "It was seen." },
  ],
};

const ENVIRONMENTS = {
  asking: {
    permissions: [
      { tool: "look", policy: "require_confirmation", reason: "it is private" },
      { tool: "wipe", policy: "block", reason: "nothing is wiped here" },
    ],
  },
  arm: { observation: { tool: "pose" }, permissions: [{ tool: "nudge", policy: "allow" }] },
  hasty: { observation: { tool: "pose", maxAgeMs: 1 }, permissions: [{ tool: "nudge", policy: "allow" }] },
  brief: { agent: { max_steps: 1 } },
  provider: { model: "gpt-x" },
  team: { permissions: [{ tool: "spawn", policy: "allow" }] },
};

function script(): string {
  const completions = Object.entries(CONVERSATIONS).flatMap(([user, entries]) =>
    entries.map((entry, index) => {
      const on = {
        user,
        ...(index < entries.length - 1 && !("on" in entry) ? { step: index + 1 } : {}),
        ...("on" in entry ? (entry.on as object) : {}),
      };
      return { ...entry, on };
    }),
  );
  return stringify({ completions });
}

/** Where a server keeps its files, and how it is started there. */
export interface FlowsHome {
  readonly folder: string;
  serve(options?: Parameters<typeof serve>[1]): Promise<ServerProcess>;
}

/** A folder with a config file and a script. */
export function flowsHome(options: { readonly providerUrl?: string; readonly owner?: (end: () => void) => void } = {}): FlowsHome {
  const { providerUrl = "http://127.0.0.1:9/v1", owner } = options;
  const folder = newDataFolder(owner);
  const data = join(folder, "data");
  mkdirSync(data);
  writeFileSync(join(folder, "script.yaml"), script());
  const config = {
    harness: "agent",
    model: `script:${join(folder, "script.yaml")}`,
    openaiBaseUrl: providerUrl,
    agents: { scout: { tools: { free: ["spawn"] } } },
    spawn: { agents: ["scout"] },
    environments: ENVIRONMENTS,
  };
  const file = join(folder, "holdfast.json");
  writeFileSync(file, JSON.stringify(config));
  return {
    folder: data,
    serve: (more = {}) =>
      serve(data, { ...more, flags: ["--config", file, ...(more.flags ?? [])], ...(owner === undefined ? {} : { owner }) }),
  };
}

/** A tool of the client's in the JSON of the proto; without a category it acts on the world. */
export function tool(name: string, more: Value = {}): Value {
  return { name, description: `${name} it`, ...more };
}

export const PURE = "TOOL_CATEGORY_PURE";
export const PHYSICAL = "TOOL_CATEGORY_PHYSICAL";
