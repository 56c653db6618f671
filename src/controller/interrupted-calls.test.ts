import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { InterruptedCallError } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { gatedCall, resumed, toolCall, ToolWorld, type HarnessRun } from "../testing/index.ts";

/** A call that cannot be answered while `isAway`, beside tools that can. */
function world(run: HarnessRun, { idempotent = true }: { readonly idempotent?: boolean } = {}) {
  const state = { isAway: true };
  const slow = Promise.withResolvers<void>();
  const made = new ToolWorld(createMemoryStore, run, {
    worker: {
      idempotent,
      run: async () => {
        if (state.isAway) throw new InterruptedCallError(new HoldfastError("unavailable", "worker: it is away"));
        return { output: { done: true } };
      },
    },
    slow: async () => {
      await slow.promise;
      return { output: { slow: true } };
    },
    quick: async () => ({ output: { quick: true } }),
  });
  return { world: made, state, slow };
}

const one: HarnessRun = async (_, sink) => {
  const { output } = await sink.toolCall(toolCall("worker", "a"));
  await sink.output(JSON.stringify(output));
};

describe("a call that its executor interrupts", () => {
  it("records nothing and leaves the turn to Resume, which drives it again", async () => {
    const { world: made, state } = world(one);
    await using host = made.host();
    const session = await host.createSession();
    const outcome = await (await host.begin(session, [])).outcome;
    expect(outcome).toMatchObject({ kind: "interrupted", error: { code: "unavailable", message: "worker: it is away" } });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL a"]);
    expect(await resumed(host, session)).toMatchObject({ kind: "interrupted" });
    state.isAway = false;
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL a", "TOOL_RESULT a", 'OUTPUT {"done":true}', "END COMPLETED"]);
    expect(await made.checks(session)).toEqual(["same"]);
  });

  it("is of unknown outcome on Resume where its tool is not idempotent", async () => {
    const { world: made, state } = world(one, { idempotent: false });
    await using host = made.host();
    const session = await host.createSession();
    await (
      await host.begin(session, [])
    ).outcome;
    state.isAway = false;
    await resumed(host, session);
    expect((await host.story(session)).slice(1, 3)).toEqual(["TOOL_CALL a", "TOOL_RESULT a 2"]);
    expect(made.tools.ran).toEqual(["a"]);
  });

  it("waits for the results of the calls beside it, which are not run again", async () => {
    const {
      world: made,
      state,
      slow,
    } = world(async (_, sink) => {
      const away = sink.toolCall(toolCall("worker", "a"));
      const beside = sink.toolCall(toolCall("slow", "b")).then(() => sink.toolCall(toolCall("quick", "c")));
      await Promise.all([away, beside]);
    });
    await using host = made.host();
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    slow.resolve();
    expect((await turn.outcome).kind).toBe("interrupted");
    expect((await host.story(session)).slice(1, 4)).toEqual(["TOOL_CALL a", "TOOL_CALL b", "TOOL_RESULT b"]);
    state.isAway = false;
    expect(await resumed(host, session)).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(made.tools.ran.filter((id) => id === "b")).toEqual(["b"]);
    expect(made.tools.ran.filter((id) => id === "c")).toEqual(["c"]);
    expect(await made.checks(session)).toEqual(["same"]);
  });

  it("stops a harness that would go on without it", async () => {
    let caught: unknown;
    const { world: made } = world(async (_, sink) => {
      try {
        await sink.toolCall(toolCall("worker", "a"));
      } catch (error) {
        caught = error;
        await sink.output("I go on without it").catch(() => undefined);
      }
    });
    await using host = made.host();
    const session = await host.createSession();
    expect((await (await host.begin(session, [])).outcome).kind).toBe("interrupted");
    expect(caught).toMatchObject({ message: "worker: it is away" });
    expect(await host.story(session)).toEqual(["EXECUTION_START", "TOOL_CALL a"]);
  });

  it("keeps a request beside it open: Resume parks the turn once the call is through", async () => {
    const { world: made, state } = world(async (_, sink) => {
      await Promise.all([sink.toolCall(toolCall("worker", "a")), sink.toolCall(gatedCall("quick", "b"))]);
    });
    await using host = made.host();
    const session = await host.createSession();
    expect((await (await host.begin(session, [])).outcome).kind).toBe("interrupted");
    state.isAway = false;
    expect(await resumed(host, session)).toMatchObject({ kind: "parked" });
    expect((await host.story(session)).filter((line) => line.startsWith("APPROVAL_REQUEST"))).toEqual(["APPROVAL_REQUEST b"]);
  });
});

describe("a controller that shuts down", () => {
  it("says so at once to whoever listens, while its turns have their grace", async () => {
    const { world: made, slow } = world(async (_, sink) => void (await sink.toolCall(toolCall("slow", "a"))));
    const host = made.host();
    const session = await host.createSession();
    const turn = await host.begin(session, []);
    expect(host.controller.closing.aborted).toBe(false);
    host.controller.closing.addEventListener("abort", () => slow.resolve(), { once: true });
    await host.controller.shutdown({ graceMs: 1_000 });
    expect(await turn.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
  });
});
