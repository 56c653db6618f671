import { describe, expect, it } from "vitest";
import type { SessionUid } from "../base/index.ts";
import { ApprovalParkedError, isUnknownOutcome, type ToolCall } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { gatedCall, toolCall, ToolWorld, type HarnessRun, type TestHost } from "../testing/index.ts";
import type { PolicyRule } from "./policy.ts";

const newWorld = (run: HarnessRun, pay = async (): Promise<object> => ({ output: { paid: 1 } })): ToolWorld =>
  new ToolWorld(({ clock, digest }) => createMemoryStore({ clock, digest }), run, {
    look: async () => ({ output: { seen: 1 } }),
    pay,
  });

const outputs = async (host: TestHost, session: SessionUid) =>
  (await host.records(session)).flatMap(({ event }) => (event?.body.case === "result" ? [event.body.value.output] : []));

describe("what a harness makes of what it was given", () => {
  it("is no result of another call under the same key", async () => {
    const world = newWorld(async (_, sink) => {
      const result = await sink.toolCall(toolCall("look", "c1", { idempotencyKey: "k" }));
      result.output = { seen: 2 };
      await sink.toolCall(toolCall("look", "c2", { idempotencyKey: "k" }));
    });
    await using host = world.host();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    expect(await outputs(host, session)).toEqual([{ seen: 1 }, { seen: 1 }]);
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("is no decision: a tool that ran is not said to have been denied", async () => {
    const running = Promise.withResolvers<void>();
    const world = newWorld(
      async (_, sink) => {
        const onDecision = (decision: { approved: boolean }): void => void (decision.approved = false);
        await sink.toolCall(gatedCall("pay", "c1"), { onDecision });
      },
      async () => {
        running.resolve();
        return new Promise<never>(() => undefined);
      },
    );
    const policies: readonly PolicyRule[] = [{ name: "yes", tool: "*", args: {}, do: "allow", reason: "" }];
    await using host = world.host({ policies });
    const session = await host.createSession();
    await host.begin(session, []);
    await running.promise;
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    const results = (await host.records(session)).flatMap(({ event }) => (event?.body.case === "result" ? [event.body.value] : []));
    expect(results.map(isUnknownOutcome)).toEqual([true]);
  });

  it("is no park", async () => {
    let isRefused = false;
    const world = newWorld(async (_, sink) => {
      await sink.toolCall(gatedCall("pay", "c1")).catch((error: unknown) => {
        if (error instanceof ApprovalParkedError) isRefused = !Reflect.set(error.ref, "requestSeq", 99n);
        throw error;
      });
    });
    await using host = world.host();
    const session = await host.createSession();
    expect(await (await host.begin(session, [])).outcome).toMatchObject({ kind: "parked", ref: { requestSeq: 3n } });
    expect(isRefused).toBe(true);
  });
});

describe("what a tool makes of a call that it checks", () => {
  it("is not recorded: the call is what was asked for", async () => {
    const look = {
      check: (call: ToolCall): undefined => void Object.assign(call.args!, { filled: "in" }),
      run: async () => ({ output: {} }),
    };
    const world = new ToolWorld(
      ({ clock, digest }) => createMemoryStore({ clock, digest }),
      async (_, sink) => void (await sink.toolCall(toolCall("look", "c1", { args: { at: 1 } }))),
      { look },
    );
    await using host = world.host();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    const asked = (await host.records(session)).flatMap(({ event }) => (event?.body.case === "tool" ? [event.body.value.args] : []));
    expect(asked).toEqual([{ at: 1 }]);
    expect(await world.checks(session)).toEqual(["same"]);
  });
});
