import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { HoldfastError, type SessionUid } from "../base/index.ts";
import { ToolResult_Code, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { JournalStore, Receipt } from "../journal/index.ts";
import { isUnknownOutcome, Mediation, unknownOutcome, type ToolResult } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { resumed, type TestTools, toolCall, ToolWorld, type HarnessRun } from "../testing/index.ts";

const newWorld = (run: HarnessRun, tools: ConstructorParameters<typeof TestTools>[0]): ToolWorld =>
  new ToolWorld(({ clock, digest }) => createMemoryStore({ clock, digest }), run, tools);

async function receiptOf(journal: JournalStore, session: SessionUid, key: string): Promise<Receipt | undefined> {
  return (await journal.receipts(session, { key }))[0];
}

const answer = (text: string) => async () => ({ output: { text } });

describe("a mediated tool call", () => {
  it("is recorded before it runs, and its result before anything that follows", async () => {
    const seen: ToolResult[] = [];
    const stories: string[][] = [];
    const at = newWorld(
      async (_, sink) => {
        seen.push(await sink.toolCall(toolCall("read", "c1", { args: { path: "a" } })));
        await sink.output("after");
      },
      {
        read: async (call, { session }) => {
          stories.push(await host.story(session));
          return { output: { got: call.args?.["path"] ?? "" }, id: "another", approvalRequestSeq: 7n };
        },
      },
    );
    await using host = at.host();
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(stories).toEqual([["EXECUTION_START", "TOOL_CALL c1"]]);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL c1", "TOOL_RESULT c1", "OUTPUT after", "END COMPLETED"]);
    expect(seen[0]).toMatchObject({ id: "c1", output: { got: "a" }, approvalRequestSeq: 0n, isError: false });
    expect(await receiptOf(at.journal, session, "c1")).toMatchObject({ state: "finished", callId: "c1", callSeq: 2, resultSeq: 3 });
    expect(await at.checks(session)).toEqual(["same"]);
    expect(at.tools.ran).toEqual(["c1"]);
  });

  it("is refused before anything is recorded", async () => {
    const faults: [string, string | undefined][] = [];
    const at = newWorld(
      async (_, sink) => {
        const refused = async (call: ReturnType<typeof toolCall>): Promise<void> => {
          const error = await sink.toolCall(call).then(
            () => undefined,
            (thrown: unknown) => thrown,
          );
          faults.push(error instanceof HoldfastError ? [error.code, error.field ?? error.message] : ["?", String(error)]);
        };
        await refused(toolCall("read", "a", { mediation: Mediation.UNSPECIFIED }));
        await refused(toolCall("read", "a", { mediation: Mediation.IN_HARNESS_REPORTED }));
        await refused(toolCall("read", "", { idempotencyKey: "k" }));
        await refused(toolCall("read", "a", { idempotencyKey: "" }));
        await refused(toolCall("nothing", "a"));
        await refused(toolCall("no such/tool", "a"));
        await refused(toolCall("picky", "a", { args: { n: "x" } }));
        await sink.toolCall(toolCall("read", "a"));
        await refused(toolCall("read", "a", { idempotencyKey: "other" }));
        await refused(toolCall("read", "b", { idempotencyKey: "a", args: { other: 1 } }));
        await sink
          .report(create(ToolResultSchema, { id: "a" }))
          .catch((error: unknown) => faults.push(["report", (error as HoldfastError).code]));
        await sink.output("done");
      },
      {
        read: answer("x"),
        picky: { run: answer("y"), check: (call) => (typeof call.args?.["n"] === "number" ? undefined : "n must be a number") },
      },
    );
    await using host = at.host();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(faults).toEqual([
      ["invalid_argument", "mediation"],
      ["invalid_argument", "mediation"],
      ["invalid_argument", "id"],
      ["invalid_argument", "idempotency_key"],
      ["failed_precondition", "tool: no tool of this host has the name nothing; start the host with it"],
      ["failed_precondition", "tool: no tool of this host has this name; start the host with it"],
      ["invalid_argument", "args"],
      ["invalid_argument", "id"],
      ["invalid_argument", "idempotency_key"],
      ["report", "invalid_argument"],
    ]);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL a", "TOOL_RESULT a", "OUTPUT done", "END COMPLETED"]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("is refused on a host without tools", async () => {
    const at = newWorld(async (_, sink) => void (await sink.toolCall(toolCall("read", "a"))), {});
    await using host = at.host({ tools: undefined });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "interrupted", error: { code: "failed_precondition" } });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "ERROR 9"]);
  });

  it("goes on after a tool that fails, an executor that throws and a result that is too large", async () => {
    const results: ToolResult[] = [];
    const at = newWorld(
      async (_, sink) => {
        for (const tool of ["fails", "throws", "refuses", "large", "torn"]) results.push(await sink.toolCall(toolCall(tool, tool)));
      },
      {
        fails: async () => ({ isError: true, error: "no such file" }),
        throws: async () => {
          throw new Error("a secret");
        },
        refuses: async () => {
          throw new HoldfastError("unavailable", "mail: the server cannot be reached");
        },
        large: async () => ({ output: { text: "x".repeat(4_000) } }),
        torn: async () => ({ output: { n: Number.NaN } }),
      },
    );
    await using host = at.host({ limits: { toolResultBytesMax: 2_000 } });
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(results.map(({ code, error }) => [code, error])).toEqual([
      [ToolResult_Code.CODE_UNSPECIFIED, "no such file"],
      [ToolResult_Code.EXECUTOR_ERROR, "the host's executor failed"],
      [ToolResult_Code.EXECUTOR_ERROR, "mail: the server cannot be reached"],
      [ToolResult_Code.EXECUTOR_ERROR, expect.stringMatching(/takes \d+ bytes; at most 2000 are recorded/)],
      [ToolResult_Code.EXECUTOR_ERROR, "the tool's result holds what no record can hold"],
    ]);
    expect(results.every(({ isError }) => isError)).toBe(true);
    expect(await at.checks(session)).toEqual(["same"]);
  });
});

describe("an effect happens once", () => {
  const once: HarnessRun = async (_, sink) => {
    await sink.toolCall(toolCall("pay", "c1"));
    await sink.output("paid");
  };

  it("is driven again after a crash if its tool is idempotent", async () => {
    const at = newWorld(once, { pay: { idempotent: true, run: answer("ok") } });
    const session = await at.crashed({ atAppend: 3, when: "before" });
    await using host = at.host({ hostId: "second" });
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(at.tools.ran).toEqual(["c1", "c1"]);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL c1", "TOOL_RESULT c1", "OUTPUT paid", "END COMPLETED"]);
  });

  it("is of unknown outcome after a crash if its tool is not", async () => {
    const at = newWorld(once, { pay: answer("ok") });
    const session = await at.crashed({ atAppend: 3, when: "before" });
    await using host = at.host({ hostId: "second" });
    expect(await receiptOf(at.journal, session, "c1")).toMatchObject({ state: "started" });
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(at.tools.ran).toEqual(["c1"]);
    const result = (await host.records(session))[2]?.event?.body;
    expect(result?.case === "result" && isUnknownOutcome(result.value)).toBe(true);
    expect(await at.journal.receipts(session)).toMatchObject([{ key: "c1", state: "unknown", resultSeq: 3 }]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("is not performed again once its result is recorded", async () => {
    const at = newWorld(once, { pay: answer("ok") });
    const session = await at.crashed({ atAppend: 3, when: "after" });
    await using host = at.host({ hostId: "second" });
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(at.tools.ran).toEqual(["c1"]);
  });

  it("is looked up for another call under its key, in its turn and in later ones", async () => {
    let id = 0;
    const results: ToolResult[] = [];
    const at = newWorld(
      async (_, sink) => {
        results.push(await sink.toolCall(toolCall("pay", `c${id++}`, { idempotencyKey: "k" })));
        results.push(await sink.toolCall(toolCall("pay", `c${id++}`, { idempotencyKey: "k" })));
      },
      { pay: answer("ok") },
    );
    await using host = at.host();
    const session = await host.createSession();
    for (let turn = 0; turn < 2; turn++) await (await host.begin(session, [])).outcome;
    expect(at.tools.ran).toEqual(["c0"]);
    expect(results.map((result) => [result.id, result.output])).toEqual(["c0", "c1", "c2", "c3"].map((call) => [call, { text: "ok" }]));
  });

  it("is settled by a person: done, failed, or to be run again", async () => {
    const settled = async (as: "done" | "failed" | "retry") => {
      const at = newWorld(once, { pay: answer("ok") });
      const session = await at.crashed({ atAppend: 3, when: "before" });
      await using host = at.host({ hostId: "second" });
      await host.controller.settle({ session, toolCallId: "c1", as, actor: undefined });
      await resumed(host, session);
      const result = (await host.records(session))[2]?.event?.body;
      return {
        ran: at.tools.ran.length,
        isError: result?.case === "result" && result.value.isError,
        left: await at.journal.receipts(session),
      };
    };
    expect(await settled("done")).toEqual({ ran: 1, isError: false, left: [] });
    expect(await settled("failed")).toEqual({ ran: 1, isError: true, left: [] });
    expect(await settled("retry")).toEqual({ ran: 2, isError: false, left: [] });
  });

  it("is settled after its unknown outcome was recorded, for calls under the same key", async () => {
    let id = 0;
    const at = newWorld(async (_, sink) => void (await sink.toolCall(toolCall("pay", `c${id++}`, { idempotencyKey: "k" }))), {
      pay: answer("ok"),
    });
    const session = await at.crashed({ atAppend: 3, when: "before" });
    id = 0;
    await using host = at.host({ hostId: "second" });
    await resumed(host, session);
    const again = async () => {
      await (
        await host.begin(session, [])
      ).outcome;
      return (await host.records(session)).at(-2)?.event?.body.value as ToolResult;
    };
    expect(isUnknownOutcome(await again())).toBe(true);
    await host.controller.settle({ session, toolCallId: "c1", as: "done", actor: undefined });
    expect(await again()).toMatchObject({ isError: false });
    await expect(host.controller.settle({ session, toolCallId: "c1", as: "done", actor: undefined })).rejects.toMatchObject({
      code: "failed_precondition",
    });
    expect(at.tools.ran).toEqual(["c0"]);
  });

  it("is of unknown outcome when its executor says so, until a person settles it", async () => {
    const at = newWorld(
      async (start, sink) => {
        const result = await sink.toolCall(toolCall("pay", start.inputs.length === 0 ? "c2" : "c1", { idempotencyKey: "k" }));
        await sink.output(isUnknownOutcome(result) ? "unknown" : result.error);
      },
      { pay: async (call) => unknownOutcome(call.id, "it did not answer") },
    );
    await using host = at.host();
    const session = await host.createSession();
    await (
      await host.begin(session, ["pay"])
    ).outcome;
    expect(await receiptOf(at.journal, session, "k")).toMatchObject({ state: "unknown", callId: "c1" });
    await (
      await host.begin(session, [])
    ).outcome;
    expect(at.tools.ran).toEqual(["c1"]);
    expect((await host.story(session)).filter((line) => line.startsWith("OUTPUT"))).toEqual(["OUTPUT unknown", "OUTPUT unknown"]);
    await host.controller.settle({ session, toolCallId: "c2", as: "failed", actor: undefined });
    await (
      await host.begin(session, [])
    ).outcome;
    expect((await host.story(session)).findLast((line) => line.startsWith("OUTPUT"))).toContain("a person has settled");
    expect(at.tools.ran).toEqual(["c1"]);
  });

  it("is never a fork's to repeat or to settle", async () => {
    const at = newWorld(once, { pay: { idempotent: true, run: answer("ok") } });
    const session = await at.crashed({ atAppend: 3, when: "before" });
    await using host = at.host({ hostId: "second" });
    const [child] = await host.controller.fork({
      parent: session,
      atSeq: 0 as never,
      children: ({ seed }) => [{ ...seed, uid: "child" as SessionUid }],
    });
    const uid = child!.seed.uid;
    await expect(host.controller.resume(uid, undefined)).rejects.toMatchObject({ code: "failed_precondition" });
    const settlement = { session: uid, toolCallId: "c1", as: "retry", actor: undefined } as const;
    await expect(host.controller.settle(settlement)).rejects.toMatchObject({ code: "failed_precondition" });
    expect(at.tools.ran).toEqual(["c1"]);
    expect(await (await host.begin(uid, [])).outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(at.tools.ran).toEqual(["c1", "c1"]);
  });

  it("is of unknown outcome when its turn is cancelled while it runs", async () => {
    const started = Promise.withResolvers<void>();
    const aborted: boolean[] = [];
    const at = newWorld(once, {
      pay: async (_, { signal }) => {
        started.resolve();
        signal.addEventListener("abort", () => aborted.push(true));
        return new Promise(() => undefined);
      },
    });
    await using host = at.host();
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    await started.promise;
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect(await turn.outcome).toMatchObject({ kind: "ended", state: "CANCELED" });
    expect(aborted).toEqual([true]);
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL c1", "TOOL_RESULT c1 2", "LIFECYCLE 5 USER", "END CANCELED"]);
    expect(await at.journal.receipts(session)).toMatchObject([{ state: "unknown" }]);
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("is of unknown outcome when an interrupted turn is cancelled", async () => {
    const at = newWorld(once, { pay: answer("ok") });
    const session = await at.crashed({ atAppend: 3, when: "before" });
    await using host = at.host({ hostId: "second" });
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect((await host.story(session)).slice(2)).toEqual(["TOOL_RESULT c1 2", "LIFECYCLE 5 USER", "END CANCELED"]);
    expect(await at.journal.receipts(session)).toMatchObject([{ state: "unknown", resultSeq: 3 }]);
  });
});
