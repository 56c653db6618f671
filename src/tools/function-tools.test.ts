import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { SessionUid } from "../base/index.ts";
import { ToolCallSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { systemClock } from "../node/index.ts";
import type { ToolCall, ToolResult } from "../spi/index.ts";
import { joinTools } from "../spi/index.ts";
import { createMemoryBlobStore } from "../stores/blobs/index.ts";
import { createFunctionTools, type FunctionTool } from "./index.ts";

const RUN = { session: "s1" as SessionUid, signal: new AbortController().signal };
const call = (tool: string, args: ToolCall["args"] = {}): ToolCall =>
  create(ToolCallSchema, { id: "c1", tool, idempotencyKey: "k1", ...(args === undefined ? {} : { args }) });
const textOf = ({ content }: ToolResult): string => content.map(({ part }) => (part.case === "text" ? part.value.text : "?")).join();

async function outputOf(run: FunctionTool["run"]): Promise<ToolResult> {
  return createFunctionTools({ t: { description: "d", run } }).execute(call("t"), RUN);
}

describe("functions as tools", () => {
  it("are listed as models are offered them", () => {
    const inputSchema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
    const tools = createFunctionTools({
      read: { description: "reads", inputSchema, idempotent: true, run: () => "" },
      write: { description: "", run: () => "" },
    });
    expect(tools.list().map(({ definition, idempotent }) => [definition.name, definition.description, idempotent])).toEqual([
      ["read", "reads", true],
      ["write", "", false],
    ]);
    expect(tools.find("read")?.definition.inputSchema).toEqual(inputSchema);
    expect(tools.find("toString")).toBeUndefined();
  });

  it("are given arguments and what names the effect", async () => {
    const seen: unknown[] = [];
    const tools = createFunctionTools({
      t: { description: "", run: (args, run) => void seen.push(args, run.session, run.idempotencyKey, run.callId) },
    });
    expect(await tools.execute(call("t", { a: 1 }), RUN)).toMatchObject({ id: "c1", isError: false });
    expect(seen).toEqual([{ a: 1 }, "s1", "k1", "c1"]);
  });

  it("answer with text, with an object, with other JSON, or with nothing", async () => {
    expect(textOf(await outputOf(() => "hello"))).toBe("hello");
    expect(await outputOf(async () => ({ n: 1, at: new Date(0), not: undefined }))).toMatchObject({
      output: { n: 1, at: "1970-01-01T00:00:00.000Z" },
    });
    expect((await outputOf(() => [1, 2])).output).toEqual({ value: [1, 2] });
    expect(await outputOf(() => undefined)).toMatchObject({ content: [], isError: false });
  });

  it("say each thing once: a text is content, anything else is output", async () => {
    expect(await outputOf(() => "hello")).not.toHaveProperty("output");
    expect(await outputOf(() => ({ n: 1 }))).toMatchObject({ output: { n: 1 }, content: [] });
    expect(await outputOf(() => [1, 2])).toMatchObject({ content: [] });
  });

  it("fail with their own words and nothing else", async () => {
    const failed = await outputOf(() => {
      throw new Error("no such file", { cause: "secret" });
    });
    expect(failed).toMatchObject({ isError: true, error: "no such file" });
    expect(textOf(failed)).toBe("no such file");
    expect(await outputOf(() => Promise.reject(new Error("")))).toMatchObject({ error: "the tool failed and did not say why" });
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    expect((await outputOf(() => cyclic)).isError).toBe(true);
  });

  it("say what is wrong with arguments, without repeating them", () => {
    const inputSchema = {
      type: "object",
      properties: { path: { type: "string" }, lines: { type: "array", items: { type: "integer" } } },
      required: ["path"],
      additionalProperties: false,
    };
    const tools = createFunctionTools({ t: { description: "", inputSchema, run: () => "" } });
    const fault = (args: ToolCall["args"]) => tools.check(call("t", args));
    expect(fault({ path: "a", lines: [1] })).toBeUndefined();
    expect(fault({})).toBe("do not fit the tool's schema: they must have required property 'path'");
    expect(fault(undefined)).toContain("path");
    expect(fault({ path: "a", lines: [1, "secret"] })).toBe("do not fit the tool's schema: lines.1 must be integer");
    expect(fault({ path: "a", other: 1 })).toContain("(other)");
    expect(fault({ path: 1, a: 1, b: 2, c: 3 })).toContain("(and 1 more)");
  });

  it("take schemas of draft 07 and of 2020-12, and refuse what is none", () => {
    const made = (inputSchema: Record<string, unknown>) => createFunctionTools({ t: { description: "", inputSchema, run: () => "" } });
    const old = made({
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: { p: { items: [{ type: "string" }] } },
    });
    expect(old.check(call("t", { p: [1] }))).toContain("p.0 must be string");
    const recent = made({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      properties: { p: { prefixItems: [{ type: "string" }] } },
    });
    expect(recent.check(call("t", { p: [1] }))).toContain("p.0 must be string");
    expect(() => made({ type: "nothing" })).toThrow("tools.t.inputSchema: must be a JSON Schema");
    expect(() => createFunctionTools({ "a b": { description: "", run: () => "" } })).toThrow("must have a name");
  });
});

describe("what functions return that is large", () => {
  const blobs = createMemoryBlobStore({ clock: systemClock });
  const made = (run: FunctionTool["run"], outputBytesMax?: number) =>
    createFunctionTools({ t: { description: "", run, outputBytesMax } }).execute(call("t"), { ...RUN, blobs });
  const wholeOf = async ({ outputUri, outputDigest }: ToolResult) =>
    new TextDecoder().decode(await blobs.get({ uri: outputUri, digest: outputDigest }));

  it("is kept as it is up to the limit, which is 65,536 bytes unless the tool says otherwise", async () => {
    const text = "x".repeat(65_536);
    const within = await made(() => text);
    expect(textOf(within)).toBe(text);
    expect(within.outputUri).toBe("");
    const beyond = await made(() => `${text}y`);
    expect(textOf(beyond)).toBe(`${text},[the tool's output takes 65537 bytes and was cut; the whole is kept as ${beyond.outputUri}]`);
    expect(await wholeOf(beyond)).toBe(`${text}y`);
    expect((await made(() => `${text}y`, 65_537)).outputUri).toBe("");
  });

  it("counts in bytes, and is cut between characters", async () => {
    const cut = await made(() => "ééé", 5);
    expect(textOf(cut)).toMatch(/^éé,\[the tool's output takes 6 bytes and was cut/);
    expect(await wholeOf(cut)).toBe("ééé");
  });

  it("is told as text where it is a structure that does not fit", async () => {
    const rows = { rows: ["one", "two", "three"] };
    const bytes = JSON.stringify(rows).length;
    expect(await made(() => rows, bytes)).toMatchObject({ output: rows, content: [], outputUri: "" });
    const cut = await made(() => rows, bytes - 1);
    expect(cut).not.toHaveProperty("output");
    expect(textOf(cut)).toContain('{"rows":["one","two","three"],[the tool');
    expect(JSON.parse(await wholeOf(cut))).toEqual(rows);
  });

  it("is bounded in a failure too", async () => {
    const failed = await made(() => Promise.reject(new Error("e".repeat(70_000))));
    expect(failed.error).toBe("e".repeat(8_192));
    expect(textOf(failed)).toMatch(/^e{65536},\[the tool's output takes 70000 bytes and was cut/);
    expect(await wholeOf(failed)).toBe("e".repeat(70_000));
  });

  it("is cut where there is no place for it, and where that place fails: the tool has run", async () => {
    const tools = createFunctionTools({ t: { description: "", run: () => "abc", outputBytesMax: 2 } });
    const full = { ...blobs, put: () => Promise.reject(new Error("no space")) };
    for (const run of [RUN, { ...RUN, blobs: full }]) {
      const cut = await tools.execute(call("t"), run);
      expect(cut).toMatchObject({ isError: false, outputUri: "" });
      expect(textOf(cut)).toBe("ab,[the tool's output takes 3 bytes and was cut; the rest was not kept]");
    }
  });

  it("has a limit that a record can hold", () => {
    const limited = (outputBytesMax: number) => createFunctionTools({ t: { description: "", run: () => "", outputBytesMax } });
    expect(() => limited(393_216)).not.toThrow();
    for (const bad of [0, 393_217, 1.5])
      expect(() => limited(bad)).toThrow("tools.t.outputBytesMax: must be a whole number from 1 to 393216");
  });
});

describe("several executors", () => {
  it("are one, the first of a name before the others", async () => {
    const one = createFunctionTools({ a: { description: "1", run: () => "one" } });
    const two = createFunctionTools({ a: { description: "2", run: () => "two" }, b: { description: "2", run: () => "two" } });
    const both = joinTools(one, two);
    expect(both.list().map(({ definition }) => `${definition.name}${definition.description}`)).toEqual(["a1", "b2"]);
    expect(textOf(await both.execute(call("a"), RUN))).toBe("one");
    expect(textOf(await both.execute(call("b"), RUN))).toBe("two");
    expect(both.check(call("b"))).toBeUndefined();
    await expect(both.execute(call("c"), RUN)).rejects.toMatchObject({ code: "failed_precondition" });
  });
});
