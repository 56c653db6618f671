import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { Ledger } from "./ledger.ts";

const OUTCOME = { success: true, result: "done" };

function bench() {
  const folder = new TemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const path = join(folder.path, "chat", "ledger.jsonl");
  return { path, open: () => Ledger.open(path) };
}

describe("the ledger of a chat", () => {
  it("knows after a crash what began and what came of it", () => {
    const { open } = bench();
    const ledger = open();
    ledger.begin("t", "a", "run", undefined);
    ledger.begin("t", "b", "write", { path: "f", before: undefined, after: "h" });
    ledger.end("t", "b", OUTCOME);
    ledger.allow("t", "c");
    ledger.allowAlways("edit");
    ledger.giveMessage("m", "text");
    const again = open();
    expect(again.callOf("t", "a")).toEqual({ kind: "began", tool: "run", mark: undefined });
    expect(again.callOf("t", "b")).toEqual({ kind: "ended", outcome: OUTCOME });
    expect(again.isAllowed("t", "c")).toBe(true);
    expect([...again.always]).toEqual(["edit"]);
    expect(again.message).toEqual({ id: "m", text: "text" });
  });

  it("tells a call of one turn from the same id in another", () => {
    const ledger = bench().open();
    ledger.end("one", "a", OUTCOME);
    expect(ledger.callOf("two", "a")).toBeUndefined();
  });

  it("forgets a turn that is over, and not what holds for the session", () => {
    const { open, path } = bench();
    const ledger = open();
    ledger.allowAlways("run");
    ledger.giveMessage("m", "text");
    ledger.end("t", "a", OUTCOME);
    ledger.endTurn();
    expect(ledger.callOf("t", "a")).toBeUndefined();
    expect(readFileSync(path, "utf8")).toBe('{"kind":"always","tool":"run"}\n');
    ledger.begin("t2", "b", "run", undefined);
    expect(open().callOf("t2", "b")).toBeDefined();
  });

  it("says what to do where it cannot be kept", () => {
    const { path } = bench();
    mkdirSync(dirname(path), { recursive: true });
    mkdirSync(path);
    expect(() => Ledger.open(path)).toThrow(
      expect.objectContaining({ code: "failed_precondition", message: expect.stringContaining("XDG_STATE_HOME") }),
    );
  });

  it("passes over a line that a crash cut, and goes on behind it", () => {
    const { open, path } = bench();
    open().end("t", "a", OUTCOME);
    appendFileSync(path, '{"kind":"ended","turn":"t","ca');
    const again = open();
    expect(again.callOf("t", "a")).toBeDefined();
    again.end("t", "b", OUTCOME);
    expect(open().callOf("t", "b")).toBeDefined();
  });
});
