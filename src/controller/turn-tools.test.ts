import { describe, expect, it } from "vitest";
import type { SessionUid } from "../base/index.ts";
import type { TurnTools, TurnToolsRequest } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { resumed, TestTools, toolCall, ToolWorld, type HarnessRun, type TestHost } from "../testing/index.ts";

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const config = new TextEncoder().encode("lamp");

/** Calls `light`, and says what it was offered and what came of the call. */
const lighter: HarnessRun = async (start, sink) => {
  await sink.output(start.tools?.map(({ name }) => name).join() ?? "none");
  const result = await sink.toolCall(toolCall("light", "a", { idempotencyKey: start.executionId }));
  await sink.output(JSON.stringify(result.output?.["by"]));
};

const openJournal = (ports: ToolWorld["ports"]) => createMemoryStore({ clock: ports.clock, digest: ports.digest });

/** A world whose host has `light` and `other`; turns of the config `lamp` have a `light` of their own, as its definition says. */
function setup(own: TestTools) {
  const by = (who: string) => async () => ({ output: { by: who } });
  const world = new ToolWorld(openJournal, lighter, { light: by("host"), other: by("host") });
  const asked: TurnToolsRequest[] = [];
  const turnTools: TurnTools = (turn) => {
    asked.push(turn);
    return text(turn.config) === "lamp" ? own : undefined;
  };
  return { world, asked, turnTools };
}

const said = (story: readonly string[]): string[] => story.flatMap((line) => (line.startsWith("OUTPUT ") ? [line.slice(7)] : []));

describe("the tools that a turn has of its own", () => {
  it("are offered before the host's and run instead of one of the same name", async () => {
    const { world, turnTools } = setup(new TestTools({ light: async () => ({ output: { by: "client" } }) }));
    await using host = world.host({ turnTools });
    const session = await host.createSession();
    await (
      await host.begin(session, [], { config })
    ).outcome;
    expect(said(await host.story(session))).toEqual(["light,other", '"client"']);
    expect(world.tools.ran).toEqual([]);
    expect(await world.checks(session)).toEqual(["same"]);
  });

  it("are that turn's alone: the next one of the session has the host's", async () => {
    const { world, turnTools } = setup(new TestTools({ light: async () => ({ output: { by: "client" } }) }));
    await using host = world.host({ turnTools });
    const session = await host.createSession();
    for (const more of [{ config }, {}]) await (await host.begin(session, [], more)).outcome;
    expect(said(await host.story(session))).toEqual(["light,other", '"client"', "light,other", '"host"']);
  });

  it("are asked for again when the turn is taken up, with what it was offered", async () => {
    const own = new TestTools({ light: { idempotent: true, run: async () => ({ output: { by: "client" } }) } });
    const { world, asked, turnTools } = setup(own);
    let session: SessionUid | undefined;
    const drive = async (host: TestHost): Promise<void> => {
      session = await host.createSession();
      await (
        await host.begin(session, [], { config })
      ).outcome;
    };
    await world.dies({ atAppend: 4, when: "before" }, drive, { turnTools });
    await using host = world.host({ turnTools });
    await resumed(host, session!);
    expect(said(await host.story(session!))).toEqual(["light,other", '"client"']);
    expect(asked.map(({ offered, config: given }) => [text(given), offered?.map(({ name }) => name).join()])).toEqual([
      ["lamp", undefined],
      ["lamp", "light,other"],
    ]);
    expect(own.ran).toEqual(["a", "a"]);
  });

  it("are needed for the turn to go on", async () => {
    const own = new TestTools({ torch: { idempotent: true, run: async () => ({}) } });
    const torch: HarnessRun = async (_, sink) => void (await sink.toolCall(toolCall("torch", "a")));
    const world = new ToolWorld(openJournal, torch, {});
    const session = await world.crashed({ atAppend: 2, when: "after" }, { turnTools: () => own });
    await using host = world.host();
    await expect(resumed(host, session)).rejects.toMatchObject({ code: "failed_precondition" });
  });
});
