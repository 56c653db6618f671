import { describe, expect, it } from "vitest";
import type { ToolResult } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { gatedCall, harnessCatalog, resumed, testHarness, TestTools, toolCall, ToolWorld, type HarnessRun } from "../testing/index.ts";
import { replaySession } from "./index.ts";

const picky = {
  check: (call: { args?: Readonly<Record<string, unknown>> | undefined }) =>
    typeof call.args?.["n"] === "number" ? undefined : "n must be a number",
  run: async () => ({ output: { ok: true } }),
};

/** Three calls at once, of which the second does not fit; its mediation is `call`'s. */
function three(call: typeof toolCall, seen: ToolResult[] = []): HarnessRun {
  return async (_, sink) => {
    const asked = [
      toolCall("picky", "a", { args: { n: 1 } }),
      call("picky", "b", { args: { n: "x" } }),
      toolCall("picky", "c", { args: { n: 2 } }),
    ];
    seen.push(...(await Promise.all(asked.map((each) => sink.toolCall(each, { unfit: "answer" })))));
    await sink.output("after");
  };
}

const world = (run: HarnessRun): ToolWorld => new ToolWorld(({ clock, digest }) => createMemoryStore({ clock, digest }), run, { picky });

describe("a call whose arguments do not fit, of a harness that wants it answered", () => {
  it.each([
    ["free", toolCall],
    ["gated", gatedCall],
  ] as const)("is recorded with its result, and neither runs nor waits: %s", async (_, call) => {
    const seen: ToolResult[] = [];
    const at = world(three(call, seen));
    await using host = at.host();
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(seen.map(({ id, isError }) => [id, isError])).toEqual([
      ["a", false],
      ["b", true],
      ["c", false],
    ]);
    expect(seen[1]).toMatchObject({ error: "args: n must be a number; the tool was not run", approvalRequestSeq: 0n });
    expect((await host.story(session)).slice(0, 5)).toEqual([
      "EXECUTION_START",
      "TOOL_CALL a",
      "TOOL_CALL b",
      "TOOL_CALL c",
      "TOOL_RESULT b 0",
    ]);
    expect(at.tools.ran.toSorted()).toEqual(["a", "c"]);
    expect(await at.journal.receipts(session, { key: "b" })).toEqual([]);
  });

  it("replays whatever the tools are by then", async () => {
    const at = world(three(toolCall));
    await using host = at.host();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    const row = (await at.journal.get(session))!;
    const harnesses = harnessCatalog({ test: testHarness(three(toolCall)) });
    const easy = new TestTools({ picky: picky.run });
    for (const tools of [at.tools, easy, new TestTools({}), undefined]) {
      const [check] = await Array.fromAsync(replaySession({ journal: at.journal, ports: at.ports, tools, harnesses }, { row }));
      expect(check?.outcome).toEqual({ kind: "same", effects: 4 });
    }
    expect(easy.ran).toEqual([]);
  });

  it("is answered from its record after a crash, by a host whose tools take such arguments", async () => {
    const at = world(three(toolCall));
    const session = await at.crashed({ atAppend: 2, when: "after" });
    await using host = at.host({ tools: new TestTools({ picky: { run: picky.run, idempotent: true } }) });
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect((await host.story(session)).filter((line) => line.startsWith("TOOL_RESULT b"))).toEqual(["TOOL_RESULT b 0"]);
  });

  it("is refused as ever where the harness does not say so", async () => {
    const at = world(async (_, sink) => void (await sink.toolCall(toolCall("picky", "a"), { unfit: "refuse" })));
    await using host = at.host();
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "interrupted", error: { code: "invalid_argument" } });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "ERROR 3"]);
  });
});
