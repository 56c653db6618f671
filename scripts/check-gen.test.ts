import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { differences } from "./check-gen.ts";
import { ROOT, run } from "./run.ts";

const GEN = join(ROOT, "src/gen");
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-check-gen-"));
  cpSync(GEN, folder, { recursive: true });
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("the check of the generated code", () => {
  it("finds nothing in code that is the same", () => {
    expect(differences(GEN, folder)).toEqual([]);
  });

  it("finds a file that was edited, one that is gone and one that nothing makes", () => {
    writeFileSync(join(folder, "roz/v1/agent_pb.ts"), "// edited\n");
    rmSync(join(folder, "agentsessions/v1/session_pb.ts"));
    writeFileSync(join(folder, "agentsessions/v1/left_pb.ts"), "export {};\n");
    expect(differences(GEN, folder)).toEqual([
      "agentsessions/v1/left_pb.ts: no proto file makes it",
      "agentsessions/v1/session_pb.ts: missing",
      "roz/v1/agent_pb.ts: not current",
    ]);
  });
});

describe("buf", () => {
  const against = ["--against", join(ROOT, "proto/baseline.binpb"), "--error-format", "json"];

  /** What buf says of a copy of the protocols in which `from` is written as `to`. */
  async function breaking(file: string, from: string, to: string): Promise<string> {
    for (const name of ["buf.yaml", "proto"]) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    const text = readFileSync(join(folder, file), "utf8");
    expect(text).toContain(from);
    writeFileSync(join(folder, file), text.replace(from, to));
    return (await run(["buf", "breaking", ...against], { cwd: folder })).output;
  }

  it.each([
    ["a field's number", "proto/agentsessions/v1/common.proto", "int64 fence = 4;", "int64 fence = 6;", "FIELD_NO_DELETE"],
    ["a field's type", "proto/roz/v1/agent.proto", "uint32 tokens_before = 4;", "string tokens_before = 4;", "FIELD_SAME_TYPE"],
    ["a value's name", "proto/agentsessions/v1/session.proto", "EXEC_AWAITING = 3;", "EXEC_WAITING = 3;", "ENUM_VALUE_SAME_NAME"],
    ["a call", "proto/holdfast/v1/journal.proto", "rpc Verify(", "rpc Check(", "RPC_NO_DELETE"],
  ])("refuses a change of %s", async (_what, file, from, to, rule) => {
    expect(await breaking(file, from, to)).toContain(rule);
  });

  it("accepts a new field", async () => {
    const added = "int64 fence = 4;\n  // The host that wrote it.\n  string host = 6;";
    expect(await breaking("proto/agentsessions/v1/common.proto", "int64 fence = 4;", added)).toBe("");
  });

  it("refuses a field without a comment", async () => {
    await breaking("proto/agentsessions/v1/common.proto", "int64 fence = 4;", "int64 fence = 4;\n  string host = 6;");
    expect((await run(["buf", "lint"], { cwd: folder })).output).toContain('Field "host" should have a non-empty comment');
  });
});
