/**
 * The demo of `examples/approval` does what it says: as it is run by `npm run demo`, and with a provider in place of the script. What it claims is
 * looked up here once more: in the folder that the agent wrote to, and in the journal. It runs the build, as a person does.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { gatedCallsIn } from "../examples/approval/journal.ts";
import { ROOT, run, type Outcome } from "../scripts/run.ts";
import { startModelServer, type ModelReply } from "../src/testing/model-server.ts";
import { openAiChunk, openAiEnd, openAiText } from "../src/testing/model-streams.ts";
import { command } from "./support/command.ts";
import { newDataFolder } from "./support/server-process.ts";

const BOOK = "January 70.00\nFebruary 12.50\n-- end --\n";
const BOOK_WITH_MARCH = "January 70.00\nFebruary 12.50\nMarch 61.50\n-- end --\n";

interface Told {
  readonly seq?: string;
  readonly fence?: string;
  readonly event?: { readonly kind?: string; readonly tool?: { readonly id?: string; readonly tool?: string } };
}

function demo(folder: string, flags: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  return run(["node", join(ROOT, "examples/approval/demo.ts"), "--folder", folder, ...flags], { env });
}

const bookIn = (folder: string): string => readFileSync(join(folder, "shop/book.txt"), "utf8");
const journalIn = (folder: string): string => readFileSync(join(folder, "journal.jsonl"), "utf8");
const recordsIn = (folder: string): readonly Told[] =>
  journalIn(folder)
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Told);

/** What a provider answers, one call of the model after the other. */
function providerAnswers(): (count: number) => ModelReply {
  const call = (name: string, args: object) => ({ name, arguments: JSON.stringify(args) });
  const edit = { oldText: "-- end --", newText: "March 61.50\n-- end --" };
  const asked = [
    [call("files__list_directory", { path: "." })],
    [call("files__read_text_file", { path: "invoice-1.txt" }), call("files__read_text_file", { path: "invoice-2.txt" })],
    [call("sums__get-sum", { a: 42.25, b: 19.25 })],
    [call("files__edit_file", { path: "book.txt", edits: [edit] })],
  ];
  return (count) => {
    const calls = asked[count];
    if (calls === undefined) return { kind: "stream", steps: [...openAiText("March is in the book."), ...openAiEnd()] };
    const deltas = calls.map((each, index) => ({ index, id: `call_${count}_${index}`, type: "function", function: each }));
    return { kind: "stream", steps: [...openAiText("So."), openAiChunk({ tool_calls: deltas }), ...openAiEnd("tool_calls")] };
  };
}

describe("the demo", () => {
  it("is killed while it waits, approved from another process, and writes once", async () => {
    const folder = newDataFolder();
    const { exitCode, output } = await demo(folder);
    expect(output).not.toContain("Not as it should be");
    expect(exitCode).toBe(0);
    expect(bookIn(folder)).toBe(BOOK_WITH_MARCH);

    const records = recordsIn(folder);
    const kinds = records.map(({ event }) => event?.kind);
    const gated = gatedCallsIn(journalIn(folder));
    expect(gated).toEqual([{ id: "call_1_4_1", tool: "files__edit_file", calls: 1, decisions: 1, results: 1, approved: true }]);
    expect(kinds.filter((kind) => kind === "EVENT_APPROVAL_REQUEST")).toHaveLength(1);
    expect(kinds.filter((kind) => kind === "EVENT_END")).toHaveLength(1);
    // The server that was killed wrote up to the park; the next one decided and went on, under newer fences.
    const suspended = kinds.indexOf("EVENT_LIFECYCLE");
    expect(kinds[suspended + 1]).toBe("EVENT_APPROVAL_RESULT");
    expect(Number(records[suspended + 1]?.fence)).toBeGreaterThan(Number(records[suspended]?.fence));
    // Both servers' tools ran; only the call that writes was asked about.
    const tools = new Set(records.flatMap(({ event }) => event?.tool?.tool ?? []));
    expect(tools).toEqual(new Set(["files__list_directory", "files__read_text_file", "sums__get-sum", "files__edit_file"]));

    expect(output).toContain("$ kill -9 ");
    expect(output).toContain(`intact  ${records.length} records`);
    expect(output).toMatch(new RegExp(`journal.jsonl: intact: ${records.length} records|there is no python3 here`));
    expect(output).toContain("1 same, 0 diverged");

    const path = join(folder, "shop/book.txt");
    const { mtimeNs, ino } = statSync(path, { bigint: true });
    const session = /^ {3}│ session (\S+)$/m.exec(output)?.[1] ?? "";
    const again = await command(["resume", session, "--server", "embedded"], {
      cwd: folder,
      env: withBin({ HOLDFAST_CONFIG: "holdfast.json" }),
    });
    expect(again).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("there was nothing to resume") });
    expect(statSync(path, { bigint: true })).toMatchObject({ mtimeNs, ino });
  });

  it("asks a real provider with nothing changed but the model's name and the key", async () => {
    const folder = newDataFolder();
    let count = 0;
    const answer = providerAnswers();
    await using server = await startModelServer({ fallback: () => answer(count++) });
    const { exitCode, output } = await demo(folder, ["--model", "gpt-x"], {
      OPENAI_API_KEY: "k",
      OPENAI_BASE_URL: server.openAiBaseUrl,
    });
    expect(output).not.toContain("Not as it should be");
    expect(exitCode).toBe(0);
    expect(server.requests.map(({ refusal }) => refusal)).toEqual(Array.from({ length: 5 }, () => undefined));
    expect(bookIn(folder)).toBe(BOOK_WITH_MARCH);
    expect(gatedCallsIn(journalIn(folder))).toMatchObject([
      { tool: "files__edit_file", calls: 1, decisions: 1, results: 1, approved: true },
    ]);
  });

  it("leaves the decision to a person at another terminal, where that is asked for; denied, nothing is written", async () => {
    const folder = newDataFolder();
    const child = spawn(process.execPath, [join(ROOT, "examples/approval/demo.ts"), "--folder", folder, "--by-hand"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    let output = "";
    for await (const chunk of child.stdout) {
      output += String(chunk);
      const [, session = "", url = ""] = /npx holdfast deny (\S+) .* --server (\S+)\n/.exec(output) ?? [];
      if (session === "" || output.includes("goes on")) continue;
      await command(["deny", session, "--reason", "not this month", "--server", url]);
    }
    expect(await exited).toEqual([0, null]);
    expect(output).toContain("1 decision (denied), 1 result");
    expect(output).toContain("That was refused");
    expect(bookIn(folder)).toBe(BOOK);
  });

  it("says so, and fails, when a model does not ask", async () => {
    const folder = newDataFolder();
    const { exitCode, output } = await demo(folder, ["--model", "echo"]);
    expect(exitCode).toBe(1);
    expect(output).toContain("Not as it should be: the turn did not come to wait for an approval");
    expect(bookIn(folder)).toBe(BOOK);
  });
});

describe("what the demo reads from a journal", () => {
  const line = (event: object): string => `${JSON.stringify({ event })}\n`;
  const call = line({ kind: "EVENT_TOOL_CALL", tool: { id: "a", tool: "write" } });
  const request = line({ kind: "EVENT_APPROVAL_REQUEST", approval: { tool_call_id: "a" } });
  const decision = line({ kind: "EVENT_APPROVAL_RESULT", approval_result: { tool_call_id: "a", approved: true } });
  const result = line({ kind: "EVENT_TOOL_RESULT", result: { id: "a" } });

  it("counts what belongs to a gated call, and would see a second one", () => {
    const single = { id: "a", tool: "write", calls: 1, decisions: 1, results: 1, approved: true };
    expect(gatedCallsIn(call + request + decision + result)).toEqual([single]);
    expect(gatedCallsIn(call + request + decision + result + result)).toEqual([{ ...single, results: 2 }]);
    expect(gatedCallsIn(call + request + decision + call + result)).toEqual([{ ...single, calls: 2 }]);
    expect(gatedCallsIn(call + request)).toEqual([{ ...single, decisions: 0, results: 0, approved: false }]);
    expect(gatedCallsIn(call + result)).toEqual([]);
  });
});

/** Variables, with the packages' programs on the path. */
function withBin(env: Readonly<Record<string, string>>): Record<string, string> {
  return { ...env, PATH: `${join(ROOT, "node_modules/.bin")}:${process.env["PATH"] ?? ""}` };
}
