import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ToolDefinitionSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { Mediation } from "../../spi/index.ts";
import { offeredTools } from "./offered-tools.ts";

const HOST = ["fs__read", "fs__write", "fs__write_all", "mail"].map((name) => create(ToolDefinitionSchema, { name }));

/** The tools on offer; those that are asked for with a question mark. */
function offered(free: readonly string[], ask: readonly string[] = []): string[] {
  const { definitions, mediations } = offeredTools(HOST, { free, ask });
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
    expect(offered(free, ask)).toEqual(names);
  });
});
