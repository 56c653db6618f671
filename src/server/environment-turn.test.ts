import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { parseAgent } from "../harnesses/index.ts";
import { createScriptedModel } from "../models/index.ts";
import { systemClock } from "../node/index.ts";
import { agentDefinition, permissionRules, resolveHost, turnConfig, type EnvironmentTurn } from "../service/index.ts";
import type { Environment } from "../spi/index.ts";
import { storyOf } from "../testing/index.ts";
import { CONFIG_WORDS, environmentOf } from "./environment-definition.ts";
import { createFunctionTools, startServer } from "./index.ts";

/** The environments of the config file that `docs/environments.md` shows. */
function documented(): Readonly<Record<string, unknown>> {
  const text = readFileSync(join(import.meta.dirname, "..", "..", "docs", "environments.md"), "utf8");
  const block = /```json\n([\s\S]*?)```/.exec(text)?.[1] ?? "";
  const file = JSON.parse(block) as { readonly environments: Readonly<Record<string, unknown>> };
  return file.environments;
}

const lab = environmentOf("lab", { at: "environments.lab", value: documented()["lab"] }, CONFIG_WORDS);
const NAMES = ["arm1__move", "arm1__pose", "arm1__stop", "arm1__reset", "arm2__move", "arm2__pose", "camera__shot", "mail__send"];

const turnAt = (where: Environment, hostId: string, changes: Partial<EnvironmentTurn> = {}): EnvironmentTurn => ({
  host: resolveHost(where, hostId, NAMES),
  clientTools: [],
  hostTools: NAMES,
  projectContext: [],
  model: "",
  messageId: "m",
  ...changes,
});

describe("the environment that the documents show", () => {
  it("does what they say of it", () => {
    const clientTools = [{ name: "open_file", category: "pure", timeoutMs: 1 }] as const;
    const { tools, observation } = agentDefinition(lab, turnAt(lab, "arm-1", { mode: "ooda_re_act", clientTools }));
    expect(tools).toEqual({
      free: ["open_file", "arm1__pose", "arm1__stop", "camera__shot"],
      ask: ["arm1__move"],
      blocked: [{ tool: "arm1__reset", reason: "a person resets an arm" }],
      pure: ["open_file", "arm1__pose", "camera__shot"],
    });
    expect(observation).toEqual({ tool: "arm1__pose" });
    expect(permissionRules(lab).map(({ toolPattern, policy }) => `${toolPattern} ${policy}`)).toEqual([
      "*__stop allow",
      "*__reset block",
      "* allow",
      "* require_confirmation",
    ]);
    expect(resolveHost(lab, "room=5", NAMES).hostId).toBe("arm-2");
  });

  it.each(["react", "ooda_re_act", undefined] as const)("makes configs that an agent takes: mode %s", (mode) => {
    const whole = { mode, projectContext: ["x"], systemContext: "y", maxContextTokens: 1_000, model: "m" };
    for (const turn of [turnAt(lab, "", { mode }), turnAt(lab, "arm-2", whole)]) {
      expect(() => parseAgent(JSON.parse(new TextDecoder().decode(turnConfig(lab, turn))), "config")).not.toThrow();
    }
  });
});

const SCRIPT = `
completions:
  - on: { step: 1 }
    calls: [{ tool: camera__shot, args: {} }, { tool: arm1__reset, args: {} }]
  - text: done
`;

describe("a turn with an environment's config", () => {
  it("runs what is free, and is told why what is blocked does not run", async () => {
    const ran: string[] = [];
    const tool = (name: string) => ({ description: name, run: () => void ran.push(name) });
    const tools = createFunctionTools(Object.fromEntries(NAMES.map((name) => [name, tool(name)])));
    const models = [{ match: "scripted", provider: createScriptedModel(SCRIPT, { clock: systemClock }) }];
    const fixed = {
      store: { kind: "memory" },
      listen: { host: "127.0.0.1", port: 0 },
      registry: { listen: "off", token: undefined },
    } as const;
    await using server = await startServer(fixed, { log: SILENT_LOG, tools, models });
    await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
    const config = turnConfig(lab, turnAt(lab, "arm-1", { mode: "react", model: "scripted" }));
    const said: string[] = [];
    const reasons: string[] = [];
    for await (const item of client.sessions.exec({ inputs: "look, then reset", harness: "agent", config })) {
      if (item.kind !== "record" || item.record.event === undefined) continue;
      said.push(storyOf(item.record.event));
      const { body } = item.record.event;
      if (body.case === "result" && body.value.isError) reasons.push(body.value.error);
    }
    expect(ran).toEqual(["camera__shot"]);
    expect(reasons).toEqual([expect.stringContaining("a person resets an arm")]);
    expect(said.at(-1)).toBe("END COMPLETED");
  });
});
