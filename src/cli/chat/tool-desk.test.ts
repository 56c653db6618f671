import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { AgentToolResult } from "../../client/index.ts";
import { systemClock } from "../../node/index.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { Ledger } from "./ledger.ts";
import { ToolDesk, type RequestedCall } from "./tool-desk.ts";
import { Workspace } from "./tools/index.ts";

/** The desk with a real folder, real commands and a real ledger. */

function bench() {
  const folder = new TemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const root = join(folder.path, "work");
  mkdirSync(root);
  const path = join(folder.path, "ledger.jsonl");
  const answers: (readonly [string, AgentToolResult])[] = [];
  const world = { workspace: new Workspace(root), clock: systemClock, environment: process.env };
  /** A desk as a chat that was just started has it. */
  const desk = (ledger = Ledger.open(path)): ToolDesk => {
    return new ToolDesk(
      world,
      () => ledger,
      (callId, result) => void answers.push([callId, result]),
    );
  };
  return { root, path, desk, answers };
}

const run = (command: string): RequestedCall => ({ callId: "c", turn: "t", tool: "run", args: { command }, timeoutMs: 0 });

describe("the desk", () => {
  it("has on disk that a call began before it does, and what came of it before that is sent", async () => {
    const { path, desk, answers } = bench();
    const at = desk();
    await at.look(run(`cat ${path}`));
    const done = await at.run("c");
    expect(done?.outcome.result).toContain('{"kind":"began","turn":"t","call":"c","tool":"run"}');
    expect(readFileSync(path, "utf8")).toContain('"kind":"ended"');
    expect(answers).toEqual([["c", expect.objectContaining({ success: true, exitCode: 0, durationMs: expect.any(BigInt) })]]);
  });

  it("answers a call that is asked for again after a crash with what it had, and runs nothing", async () => {
    const { root, desk, answers } = bench();
    const first = desk();
    await first.look(run("echo x >> ran; echo once"));
    await first.run("c");
    expect(await desk().look(run("echo x >> ran; echo once"))).toMatchObject({ kind: "answered", outcome: { result: "once\n" } });
    expect(readFileSync(join(root, "ran"), "utf8")).toBe("x\n");
    expect(answers.map(([, { result }]) => result)).toEqual(["once\n", "once\n"]);
  });

  it("says of a call that was cut by a crash that nobody knows, and says the same when it is asked again", async () => {
    const { root, path, desk, answers } = bench();
    Ledger.open(path).begin("t", "c", "run", undefined);
    for (let again = 0; again < 2; again++)
      expect(await desk().look(run("touch ran"))).toMatchObject({ summary: "run touch ran, before the chat was started anew" });
    expect(existsSync(join(root, "ran"))).toBe(false);
    expect(answers.map(([, { result }]) => result?.slice(0, 16))).toEqual(["unknown outcome:", "unknown outcome:"]);
  });

  it("takes the same id in another turn for another call", async () => {
    const { path, desk } = bench();
    Ledger.open(path).begin("earlier", "c", "run", undefined);
    expect(await desk().look(run("true"))).toMatchObject({ kind: "prepared", isAllowed: false });
  });

  it("keeps nothing of calls that only look: they may be run again", async () => {
    const { path, desk } = bench();
    const at = desk();
    await at.look({ callId: "c", turn: "t", tool: "list", args: {}, timeoutMs: 0 });
    await at.run("c");
    expect(readFileSync(path, "utf8")).toBe("");
  });

  it("answers what cannot be run with why", async () => {
    const { desk, answers } = bench();
    const look = await desk().look({ callId: "c", turn: "t", tool: "read", args: { path: "../x" }, timeoutMs: 0 });
    expect(look).toMatchObject({ summary: "read ../x" });
    desk().refuse("d", "no");
    expect(answers.map(([callId, { success, result }]) => [callId, success, result])).toEqual([
      ["c", false, expect.stringContaining("leads out of the folder")],
      ["d", false, "no"],
    ]);
  });

  it("does not run what would change something while it cannot be written down, and says so", async () => {
    const { root, path, desk, answers } = bench();
    const ledger = Ledger.open(path);
    const at = desk(ledger);
    await at.look(run("touch ran"));
    ledger[Symbol.dispose]();
    await at.run("c");
    expect(existsSync(join(root, "ran"))).toBe(false);
    expect(answers.map(([, { result }]) => result)).toEqual([expect.stringMatching(/^it was not run/)]);
  });

  it("has ended what ran once it is disposed of, also what does not heed a polite signal", async () => {
    const { root, desk } = bench();
    const at = desk();
    await at.look(run("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done"));
    const running = at.run("c");
    while (!existsSync(join(root, "pid")) || readFileSync(join(root, "pid"), "utf8") === "") await systemClock.sleep(10);
    await at[Symbol.asyncDispose]();
    expect(() => process.kill(Number(readFileSync(join(root, "pid"), "utf8")), 0)).toThrow("ESRCH");
    await running;
  });

  it("ends what runs when its time is over, and when the turn is", async () => {
    const { desk, answers } = bench();
    const at = desk();
    await at.look({ ...run("sleep 60"), timeoutMs: 50 });
    await at.run("c");
    await at.look(run("sleep 60"));
    const running = at.run("c");
    at.stop();
    await running;
    expect(answers.map(([, { result }]) => result)).toEqual(["[it was cancelled]", "[it was cancelled]"]);
  });
});
