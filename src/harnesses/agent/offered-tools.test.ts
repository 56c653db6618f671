import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ToolDefinitionSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { Mediation } from "../../spi/index.ts";
import { parseAgent, type AgentMode, type AgentTools } from "./definition.ts";
import { offeredTools, type OfferedTools, type ToolRules } from "./offered-tools.ts";

const HOST = ["fs__read", "fs__write", "fs__write_all", "mail"].map((name) => create(ToolDefinitionSchema, { name }));

const rules = (tools: AgentTools, mode?: AgentMode): ToolRules => parseAgent({ tools, mode, observation: { tool: "look" } }, "agent");
const offer = (tools: AgentTools, mode?: AgentMode): OfferedTools => offeredTools(HOST, rules(tools, mode));

/** The tools on offer; those that are asked for with a question mark. */
function namesOf({ definitions, mediations }: OfferedTools): string[] {
  return definitions.map(({ name }) => (mediations.get(name) === Mediation.REQUIRES_APPROVAL ? `${name}?` : name));
}

describe("the tools that an agent is offered", () => {
  it.each<[readonly string[], readonly string[], readonly string[]]>([
    [[], [], []],
    [["fs__read", "none"], [], ["fs__read"]],
    [["fs__*"], [], ["fs__read", "fs__write", "fs__write_all"]],
    [["*"], ["fs__write*"], ["fs__read", "fs__write?", "fs__write_all?", "mail"]],
    [["fs__read"], ["*"], ["fs__read", "fs__write?", "fs__write_all?", "mail?"]],
    [["fs__write"], ["fs__write*"], ["fs__write", "fs__write_all?"]],
    [
      ["mail", "fs__*"],
      ["mail", "fs__*"],
      ["fs__read?", "fs__write?", "fs__write_all?", "mail?"],
    ],
  ])("are the host's that fit, in the host's order: free %j, ask %j", (free, ask, names) => {
    expect(namesOf(offer({ free, ask }))).toEqual(names);
  });

  it.each<[readonly string[], readonly string[]]>([
    [["mail"], ["fs__read", "fs__write?", "fs__write_all?"]],
    [["fs__w*"], ["fs__read", "mail"]],
    [["fs__*"], ["fs__read", "mail"]],
    [["*"], ["fs__read", "fs__write?", "fs__write_all?"]],
    [["fs__read"], ["fs__write?", "fs__write_all?", "mail"]],
  ])("are not those that are blocked, unless something fits the name better: %j", (blocked, names) => {
    const tools = { free: ["*", "fs__read"], ask: ["fs__*"], blocked: blocked.map((tool) => ({ tool })) };
    expect(namesOf(offer(tools))).toEqual(names);
  });

  it("has for a blocked tool the reason of what fits it best, whether the host has it or not", () => {
    const { withheld } = offer({
      free: ["mail"],
      blocked: [
        { tool: "*", reason: "nothing here" },
        { tool: "fs__*", reason: "no files" },
      ],
    });
    expect(["fs__read", "shell", "mail"].map(withheld)).toEqual([
      "this tool is blocked, so nothing was run: no files",
      "this tool is blocked, so nothing was run: nothing here",
      undefined,
    ]);
  });

  it("are the pure ones in mode react, and all in ooda_re_act and without a mode", () => {
    const tools = { free: ["fs__*"], ask: ["mail"], pure: ["fs__r*", "mail"] };
    expect(namesOf(offer(tools, "react"))).toEqual(["fs__read", "mail?"]);
    for (const mode of ["ooda_re_act", undefined] as const) {
      expect(namesOf(offer(tools, mode))).toEqual(["fs__read", "fs__write", "fs__write_all", "mail?"]);
    }
    const { withheld } = offer(tools, "react");
    expect(["fs__write", "fs__read", "other"].map(withheld)).toEqual([
      "this is a physical tool, which belongs to the mode ooda_re_act; nothing was run",
      undefined,
      undefined,
    ]);
    expect(["fs__read", "fs__write", "other"].map(offer(tools, "ooda_re_act").isPhysical)).toEqual([false, true, true]);
    expect(offer(tools).isPhysical("fs__write")).toBe(false);
  });
});
