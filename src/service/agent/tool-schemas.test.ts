import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ToolCategoryHint, ToolSchemaSchema } from "../../gen/roz/v1/agent_pb.ts";
import { AGENT_LIMITS } from "./limits.ts";
import { SchemaChecks } from "./schema-checks.ts";
import { changedTools, toolSpec } from "./tool-schemas.ts";

describe("the tools of a client", () => {
  const tool = (name: string, more = {}) => create(ToolSchemaSchema, { name, ...more });
  const named = (tools: readonly { name: string }[]) => tools.map(({ name }) => name);

  it("act on the world unless they say that they do not, and take the server's time where they name none", () => {
    expect(toolSpec(tool("a"), AGENT_LIMITS)).toMatchObject({ category: "physical", timeoutMs: 120_000 });
    expect(toolSpec(tool("a", { category: ToolCategoryHint.TOOL_CATEGORY_PURE, timeoutMs: 5 }), AGENT_LIMITS)).toMatchObject({
      category: "pure",
      timeoutMs: 5,
    });
    expect(toolSpec(tool("a", { category: 99, timeoutMs: 0xffff_ffff }), AGENT_LIMITS)).toMatchObject({
      category: "physical",
      timeoutMs: 3_600_000,
    });
  });

  it("change by their source: those named after it go, and nobody else's", () => {
    const before = [tool("a__1"), tool("ab__1"), tool("a"), tool("b")];
    expect(named(changedTools(before, { source: "a", tools: [tool("a__2"), tool("b")] }))).toEqual(["ab__1", "a", "a__2", "b"]);
    expect(named(changedTools(before, { source: "", tools: [] }))).toEqual(["a__1", "ab__1", "a", "b"]);
    expect(named(changedTools(before, { source: "", tools: [tool("a__1")] }))).toEqual(["ab__1", "a", "b", "a__1"]);
  });

  it("have each schema compiled once, and so many kept", () => {
    let compiled = 0;
    const checks = new SchemaChecks(() => {
      compiled += 1;
      return () => undefined;
    });
    const first = checks.of({ type: "object" }, "x");
    expect(checks.of({ type: "object" }, "y")).toBe(first);
    expect(compiled).toBe(1);
    for (let index = 0; index < 256; index++) checks.of({ title: String(index) }, "x");
    checks.of({ type: "object" }, "x");
    expect(compiled).toBe(258);
  });
});
