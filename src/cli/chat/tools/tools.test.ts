import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../node/index.ts";
import { TemporaryFolder } from "../../../testing/temporary-folder.ts";
import {
  LOCAL_TOOLS,
  localTool,
  recovered,
  toolSchema,
  Workspace,
  type PreparedCall,
  type RefusedCall,
  type ToolOutcome,
} from "./index.ts";

/** The tools in a real folder, with real processes. */

function bench(files: Readonly<Record<string, string | Uint8Array>> = {}) {
  const folder = new TemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const root = join(folder.path, "work");
  mkdirSync(root);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  const world = { workspace: new Workspace(root), clock: systemClock, environment: { ...process.env, HOLDFAST_TOKEN: "secret-token" } };
  const prepare = async (tool: string, args: JsonObject): Promise<PreparedCall | RefusedCall> => {
    const prepared = await localTool(tool)?.prepare(args, world);
    if (prepared === undefined) throw new Error(`no tool ${tool}`);
    return prepared;
  };
  const call = async (tool: string, args: JsonObject, signal = new AbortController().signal): Promise<ToolOutcome> => {
    const prepared = await prepare(tool, args);
    return "refused" in prepared ? { success: false, result: prepared.refused } : prepared.run({ signal });
  };
  return { root, outside: folder.path, world, prepare, call };
}

const consentOf = (prepared: PreparedCall | RefusedCall): string => ("refused" in prepared ? prepared.refused : prepared.consent);

/** Whether the process whose id a file holds still runs. One that nobody has collected is over. */
function runs(pidPath: string): boolean {
  try {
    const state = execFileSync("ps", ["-o", "stat=", "-p", readFileSync(pidPath, "utf8").trim()], { encoding: "utf8" });
    return !state.trim().startsWith("Z");
  } catch {
    return false;
  }
}

describe("paths", () => {
  it("lead into the folder or are refused, links followed", async () => {
    const { root, outside, call } = bench({ "in.txt": "inside" });
    writeFileSync(join(outside, "out.txt"), "outside");
    symlinkSync(outside, join(root, "up"));
    symlinkSync(join(outside, "out.txt"), join(root, "out"));
    symlinkSync("in.txt", join(root, "alias"));
    for (const path of ["../out.txt", "up/out.txt", "out", join(outside, "out.txt"), "up/new/deep.txt", "a/../../out.txt"]) {
      for (const [tool, args] of [
        ["read", { path }],
        ["write", { path, content: "x" }],
        ["edit", { path, old: "o", new: "x" }],
        ["list", { path }],
      ] as const) {
        expect({ path, tool, ...(await call(tool, args)) }).toMatchObject({
          success: false,
          result: expect.stringContaining("leads out of the folder"),
        });
      }
    }
    expect(readFileSync(join(outside, "out.txt"), "utf8")).toBe("outside");
    expect(await call("read", { path: "alias" })).toMatchObject({ success: true, result: "inside" });
    expect(await call("read", { path: join(root, "in.txt") })).toMatchObject({ success: true, result: "inside" });
  });

  it("of secrets and of version control are asked about every time, by whatever name", async () => {
    const { root, prepare } = bench({
      ".env": "A=1",
      "keys/server.pem": "k",
      ".git/config": "c",
      "a.txt": "t",
      ".env.example": "A=",
      ".holdfast/j": "j",
    });
    symlinkSync(".env", join(root, "innocent.txt"));
    for (const path of [".env", "keys/server.pem", ".git/config", ".holdfast/j", "innocent.txt", "./keys/../.ENV"]) {
      expect([path, consentOf(await prepare("read", { path }))]).toEqual([path, "ask-always"]);
    }
    expect(consentOf(await prepare("write", { path: ".env", content: "B=2" }))).toBe("ask-always");
    expect(consentOf(await prepare("read", { path: "a.txt" }))).toBe("none");
    expect(consentOf(await prepare("read", { path: ".env.example" }))).toBe("none");
    expect(consentOf(await prepare("write", { path: "a.txt", content: "x" }))).toBe("ask");
    expect(consentOf(await prepare("run", { command: "ls" }))).toBe("ask");
  });
});

describe("read", () => {
  it("gives a text, and of a long one a part with a word on how to go on", async () => {
    const lines = Array.from({ length: 5_000 }, (_, index) => `line ${index + 1}`);
    const { call } = bench({ "long.txt": `${lines.join("\n")}\n`, "short.txt": "a\nb\n" });
    expect(await call("read", { path: "short.txt" })).toEqual({ success: true, result: "a\nb" });
    const first = await call("read", { path: "long.txt" });
    expect(first).toMatchObject({ success: true, truncated: true });
    expect(first.result).toMatch(/line 2000\n\[lines 1 to 2000 of 5000; go on with from_line 2001\]$/);
    expect((await call("read", { path: "long.txt", from_line: 4_999, lines: 10 })).result).toBe(
      "line 4999\nline 5000\n[lines 4999 to 5000 of 5000; the last]",
    );
  });

  it("refuses what is no text, what is too large and what is not there, without a path of the machine", async () => {
    const { root, call } = bench({
      "b.bin": Buffer.from([1, 0, 2]),
      "l.bin": Buffer.from([0xff, 0xfe, 0xc0]),
      "big.txt": "x".repeat(5 * 1024 * 1024),
    });
    const results = [];
    for (const path of ["b.bin", "l.bin", "big.txt", "none.txt", "."]) results.push((await call("read", { path })).result);
    expect(results).toEqual([
      "the file is not text (3 bytes)",
      "the file is not text (3 bytes)",
      "the file has 5242880 bytes; at most 4194304 are read",
      "there is no such file or folder",
      "it is a folder, not a file",
    ]);
    expect(results.join()).not.toContain(root);
    // Opening a pipe would wait until somebody writes to it.
    execFileSync("mkfifo", [join(root, "pipe")]);
    expect(await call("read", { path: "pipe" })).toEqual({ success: false, result: "it is neither a file nor a folder" });
    expect(await call("read", { path: 7 })).toEqual({ success: false, result: "path: must be a text" });
  });
});

describe("list and search", () => {
  const FILES = {
    "src/a.ts": "const Answer = 42;\n",
    "src/deep/b.ts": "// the answer\n",
    "node_modules/x/c.ts": "answer\n",
    ".env": "answer=1\n",
    "b.bin": Buffer.from([0]),
  };

  it("list folders with a slash and files with their size, and go no deeper than asked", async () => {
    const { call } = bench(FILES);
    expect((await call("list", {})).result).toBe(".env 9\nb.bin 1\nnode_modules/\nsrc/");
    expect((await call("list", { path: "src", depth: 2 })).result).toBe("src/a.ts 19\nsrc/deep/\nsrc/deep/b.ts 14");
    expect((await call("list", { depth: 6 })).result).not.toContain("c.ts");
  });

  it("do not show the data folder of a server that runs in the chat, unless it is named", async () => {
    const { call } = bench({ "a.txt": "answer\n", ".holdfast/journal.sqlite": "answer\n", "sub/.holdfast/j": "answer\n" });
    expect((await call("list", { depth: 3 })).result).toBe("a.txt 7\nsub/");
    expect((await call("search", { text: "answer" })).result).toBe("a.txt:1: answer");
    expect((await call("list", { path: ".holdfast" })).result).toBe(".holdfast/journal.sqlite 7");
  });

  it("find lines, and pass secrets, packages and what is no text over", async () => {
    const { call } = bench(FILES);
    expect((await call("search", { text: "answer", ignore_case: true })).result).toBe(
      "src/a.ts:1: const Answer = 42;\nsrc/deep/b.ts:1: // the answer",
    );
    expect((await call("search", { text: "Answer", path: "src/a.ts" })).result).toBe("src/a.ts:1: const Answer = 42;");
    expect((await call("search", { text: "nowhere" })).result).toBe("[no line has it]");
    const many = bench({ "m.txt": "hit\n".repeat(300) });
    const cut = await many.call("search", { text: "hit", limit: 3 });
    expect(cut).toMatchObject({ truncated: true, result: "m.txt:1: hit\nm.txt:2: hit\nm.txt:3: hit\n[there are more than 3]" });
  });
});

describe("write and edit", () => {
  it("put a file in the place of the old one, and make folders on the way", async () => {
    const { root, call } = bench({ "run.sh": "old" });
    expect((await call("write", { path: "new/deep/a.txt", content: "hello\n" })).result).toBe("wrote new/deep/a.txt (new, 6 bytes)");
    expect(readFileSync(join(root, "new/deep/a.txt"), "utf8")).toBe("hello\n");
    const { mode } = statSync(join(root, "run.sh"));
    expect((await call("write", { path: "run.sh", content: "new" })).result).toBe("wrote run.sh (replaced, 3 bytes)");
    expect(statSync(join(root, "run.sh")).mode).toBe(mode);
    expect(readdirSync(root)).toEqual(["new", "run.sh"]);
  });

  it("show before what would change, under the name that allows them", async () => {
    const { prepare } = bench({ "a.txt": "one\ntwo\nthree\n" });
    const prepared = await prepare("edit", { path: "a.txt", old: "two", new: "2" });
    expect(prepared).toMatchObject({ summary: "edit a.txt (1 place, 12 bytes)", hasDiff: true, details: "  one\n- two\n+ 2\n  three" });
    expect(await prepare("write", { path: "a.txt", content: "" })).toMatchObject({ summary: "write a.txt (replaced, 0 bytes)" });
  });

  it("replace a piece only where it is clear which", async () => {
    const { root, call } = bench({ "a.txt": "x y x" });
    expect((await call("edit", { path: "a.txt", old: "z", new: "q" })).result).toContain("does not have this piece");
    expect((await call("edit", { path: "a.txt", old: "x", new: "q" })).result).toContain("has it 2 times");
    expect((await call("edit", { path: "a.txt", old: "x", new: "q", all: true })).success).toBe(true);
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("q y q");
  });

  it("leave a file alone that somebody changed after the question", async () => {
    const { root, prepare } = bench({ "a.txt": "one" });
    const prepared = await prepare("write", { path: "a.txt", content: "two" });
    writeFileSync(join(root, "a.txt"), "mine");
    expect("run" in prepared && (await prepared.run({ signal: new AbortController().signal }))).toEqual({
      success: false,
      result: "the file was changed meanwhile; read it again",
    });
    expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("mine");
  });

  it("do not replace what is no text, nor write more than 1 MiB", async () => {
    const { call } = bench({ "b.bin": Buffer.from([0, 1]) });
    expect((await call("write", { path: "b.bin", content: "x" })).result).toContain("not text");
    expect((await call("write", { path: "big.txt", content: "x".repeat(1024 * 1024 + 1) })).result).toContain("at most 1048576");
  });
});

describe("run", () => {
  it("gives what a command writes and how it ended", async () => {
    const { root, call } = bench();
    expect(await call("run", { command: "pwd; echo err >&2; exit 3" })).toMatchObject({
      success: false,
      exitCode: 3,
      result: expect.stringMatching(new RegExp(`^(${root}\nerr|err\n${root})\n\\[exit code 3\\]$`)),
    });
    expect(await call("run", { command: "true" })).toMatchObject({ success: true, exitCode: 0, result: "[no output]" });
  });

  it("keeps the beginning and the end of what is too much", async () => {
    const { call } = bench();
    const outcome = await call("run", { command: "seq 1 100000" });
    expect(outcome).toMatchObject({ success: true, truncated: true });
    expect(outcome.result.length).toBeLessThan(66_000);
    expect(outcome.result).toMatch(/^1\n2\n[^]*\[\d+ bytes left out\][^]*\n100000\n$/);
  });

  it("ends the command and all that it began, when its time is over and when it is cancelled", async () => {
    const { root, call } = bench();
    const slow = "sleep 300 & echo $! > pid; wait";
    expect(await call("run", { command: slow, timeout_seconds: 1 })).toMatchObject({ success: false, result: "[it was ended after 1 s]" });
    await expect.poll(() => runs(join(root, "pid"))).toBe(false);
    const cancelling = new AbortController();
    const cancelled = call("run", { command: "trap '' TERM; sleep 300 & echo $! > pid; echo up > up; wait; sleep 300" }, cancelling.signal);
    await expect.poll(() => existsSync(join(root, "up"))).toBe(true);
    cancelling.abort();
    expect((await cancelled).result).toContain("[it was cancelled]");
    await expect.poll(() => runs(join(root, "pid"))).toBe(false);
  });

  it("leaves nothing running, and does not wait for it", async () => {
    const { root, call } = bench();
    expect(await call("run", { command: "sleep 300 & echo $! > pid" })).toMatchObject({ success: true });
    await expect.poll(() => runs(join(root, "pid"))).toBe(false);
  });

  it("does not wait for the output of what has left its group", async () => {
    const { root, call } = bench();
    onTestFinished(() => void process.kill(Number(readFileSync(join(root, "pid"), "utf8"))));
    const result = await call("run", {
      command: "setsid sh -c 'echo $$ > pid; echo up; exec sleep 600' & while ! [ -s pid ]; do :; done; echo done",
    });
    expect(result).toMatchObject({ success: true, result: expect.stringContaining("done") });
    expect(runs(join(root, "pid"))).toBe(true);
  });

  it("is given no token of this program's", async () => {
    expect((await bench().call("run", { command: "env" })).result).not.toContain("secret-token");
  });
});

describe("a call that was running when the chat was killed", () => {
  it("is told by what is in the file, where that says it", async () => {
    const { root, world, prepare } = bench({ "a.txt": "old" });
    const prepared = await prepare("write", { path: "a.txt", content: "new" });
    const mark = "mark" in prepared ? prepared.mark : undefined;
    expect(await recovered("write", mark, world.workspace)).toMatchObject({
      success: false,
      result: expect.stringContaining("was not written"),
    });
    writeFileSync(join(root, "a.txt"), "new");
    expect(await recovered("write", mark, world.workspace)).toMatchObject({ success: true });
    writeFileSync(join(root, "a.txt"), "other");
    expect((await recovered("write", mark, world.workspace)).result).toMatch(/^unknown outcome:/);
    expect((await recovered("run", undefined, world.workspace)).result).toMatch(/^unknown outcome: the client was killed while `run` ran/);
  });
});

describe("the tools as the server is told of them", () => {
  it("are pure, have a schema, and give a person an hour to decide", () => {
    for (const tool of LOCAL_TOOLS) {
      expect(toolSchema(tool)).toMatchObject({
        name: tool.name,
        category: 2,
        timeoutMs: 3_600_000,
        parametersSchema: { type: "object", additionalProperties: false },
      });
    }
  });
});
