import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HoldfastError, SILENT_LOG } from "../base/index.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { createScriptedModel } from "../models/index.ts";
import { systemClock } from "../node/index.ts";
import { storyOf } from "../testing/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { createFunctionTools, readConfig, startServer, type AgentDefinition } from "./index.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** The agents of a config file beside these files. */
function agentsOf(agents: unknown, files: Readonly<Record<string, string>> = {}): Readonly<Record<string, AgentDefinition>> {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
  const config = join(folder.path, "holdfast.json");
  writeFileSync(config, JSON.stringify({ agents }));
  return readConfig({ config }, {}).agents;
}

async function refusal(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe("invalid_argument");
    expect(error.message).not.toContain(folder.path);
    return error.message;
  }
  return "";
}

const started = (agents: Readonly<Record<string, AgentDefinition>>, options: Parameters<typeof startServer>[1] = {}) =>
  startServer(
    { store: { kind: "memory" }, listen: { host: "127.0.0.1", port: 0 }, registry: { listen: "off", token: undefined }, agents },
    { log: SILENT_LOG, ...options },
  );

const SCOUT = `
# Looks and tells.
system_prompt: |
  You look.
model: scripted
tools:
  free: [look]
  ask: ["*"]
`;

const SCRIPT = `
completions:
  - on: { step: 1 }
    calls: [{ tool: look, args: { at: sea } }]
  - text: I have seen it.
`;

describe("the agents of a config file", () => {
  it("are in files of YAML and JSON, or in the file itself", () => {
    const json = '{"max_steps": 3}';
    expect(
      agentsOf({ scout: "scout.yaml", small: "small.json", own: { model: "m" } }, { "scout.yaml": SCOUT, "small.json": json }),
    ).toEqual({
      scout: { system_prompt: "You look.\n", model: "scripted", tools: { free: ["look"], ask: ["*"] } },
      small: { max_steps: 3 },
      own: { model: "m" },
    });
    expect(readConfig({}, {}).agents).toEqual({});
  });

  it.each<[unknown, Readonly<Record<string, string>>, string]>([
    [[], {}, "agents: must be an object"],
    [{ scout: 1 }, {}, "agents.scout: must be a definition, or name a file of one in YAML or JSON"],
    [{ scout: "none.yaml" }, {}, "agents.scout: must name a file that can be read"],
    [{ scout: "a.yaml" }, { "a.yaml": "- secret" }, "agents.scout: must be a definition, or name a file of one in YAML or JSON"],
    [
      { scout: "a.yaml" },
      { "a.yaml": "model: a\nmodel: secret" },
      "agents.scout: must name a file of YAML or JSON; this one is neither, see its line 2",
    ],
  ])("are refused by the path of what is wrong: %j", async (agents, files, message) => {
    expect(await refusal(() => agentsOf(agents, files))).toBe(message);
  });

  it.each<[Readonly<Record<string, object>>, string]>([
    [{ scout: { tools: { ask: ["a b"] } } }, "agents.scout.tools.ask[0]: must be a tool's name, or the start of one and *"],
    [{ Scout: {} }, "agents.Scout: must be 1 to 63 lowercase letters, digits and hyphens, and begin and end with a letter or a digit"],
    [{ chat: {} }, "agents.chat: is the name of another harness of this host"],
  ])("stop a server from starting where they are wrong: %j", async (agents, message) => {
    expect(await refusal(() => started(agents))).toBe(message);
  });

  it("are harnesses of a server, with its tools", async () => {
    const tools = createFunctionTools({ look: { description: "looks", run: () => "the sea" } });
    const models = [{ match: "scripted", provider: createScriptedModel(SCRIPT, { clock: systemClock }) }];
    await using server = await started(agentsOf({ scout: "scout.yaml" }, { "scout.yaml": SCOUT }), { tools, models });
    await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
    const said: string[] = [];
    for await (const item of client.sessions.exec({ inputs: "go", harness: "scout" })) {
      if (item.kind === "record" && item.record.event !== undefined) said.push(storyOf(item.record.event));
    }
    expect(said.filter((line) => line !== "USAGE")).toEqual([
      "EXECUTION_START",
      "INPUT go",
      "MODEL_CALL",
      "OUTPUT toolCall",
      expect.stringMatching(/^TOOL_CALL /),
      expect.stringMatching(/^TOOL_RESULT /),
      "MODEL_CALL",
      "OUTPUT I have seen it.",
      "END COMPLETED",
    ]);
  });
});
