import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { SessionUid } from "../../base/index.ts";
import type { BudgetConfig } from "../../controller/index.ts";
import { UsageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { messageText, textMessage, type ModelChunk } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { resultWords, spawnCall, SpawnWorld, TestModel, type HarnessRun, type SpawningHost } from "../../testing/index.ts";

/** Each call costs 100 tokens. */
const hundred = (): TestModel =>
  new TestModel(async function* (): AsyncGenerator<ModelChunk, void, undefined> {
    const usage = create(UsageSchema, { model: "test", inputTokens: 99n, outputTokens: 1n });
    yield { kind: "completed", response: { message: textMessage("assistant", "ok"), usage }, facts: {} };
  });

/** `2 s1 s3`: asks the model twice, then spawns one that asks it once, then one that asks it three times. */
const spender: HarnessRun = async ({ inputs, model }, sink) => {
  for (const [index, word] of messageText(inputs[0]!).split(" ").entries()) {
    if (word.startsWith("s")) {
      await sink.output(resultWords(await sink.toolCall(spawnCall(`c${index}`, { agent: "worker", prompt: word.slice(1) }))));
      continue;
    }
    for (let asked = 0; asked < Number(word); asked++) {
      await sink.model({ model, messages: [textMessage("user", `${index} ${asked}`)] });
    }
  }
};

const newWorld = (): SpawnWorld =>
  new SpawnWorld({ openJournal: createMemoryStore, models: hundred(), harnesses: { test: spender, worker: spender } });

/** Runs a turn; what its END or its refusal says. */
async function turn(host: SpawningHost, session: SessionUid, input: string): Promise<string> {
  const begun = await host.begin(session, [input]).catch((error: unknown) => error);
  if (begun instanceof Error) return begun.message;
  await (begun as Awaited<ReturnType<SpawningHost["begin"]>>).outcome;
  const body = (await host.records(session)).at(-1)?.event?.body;
  return body?.case === "end" ? (body.value.error?.description ?? body.value.state) : (body?.case ?? "nothing");
}

const outputs = async (host: SpawningHost, session: SessionUid): Promise<string[]> =>
  (await host.story(session)).filter((line) => line.startsWith("OUTPUT failed"));

describe("what workers spend", () => {
  const tree: BudgetConfig = { tree: { tokens: 450 } };

  it("is their root's tree's, while they run and after a restart", async () => {
    const world = newWorld();
    await using host = world.host({ budgets: tree });
    const session = await host.createSession();
    // 100, then 300 of the worker's, then 100: the next one is over the limit.
    expect(await turn(host, session, "1 s3 2")).toBe("budget tree.tokens: 500 of 450 are used");
    expect(await turn(host, await host.createSession(), "3")).toBe("COMPLETED");
    await using next = world.host({ budgets: tree, hostId: "next" });
    expect(await turn(next, session, "1")).toBe("budget tree.tokens: 500 of 450 are used; nothing was done");
    expect(await turn(next, world.worker(session, "c1"), "1")).toBe("budget tree.tokens: 500 of 450 are used; nothing was done");
  });

  it("ends the worker that crosses the limit, and tells its spawner which", async () => {
    const world = newWorld();
    await using host = world.host({ budgets: { turn: { tokens: 250 } } });
    const session = await host.createSession();
    expect(await turn(host, session, "1 s4 1")).toBe("COMPLETED");
    expect(await outputs(host, session)).toEqual(["OUTPUT failed: the sub-agent has no answer: budget turn.tokens: 300 of 250 are used"]);
  });

  it("keeps workers from beginning where nothing is left", async () => {
    const world = newWorld();
    await using host = world.host({ budgets: tree });
    const session = await host.createSession();
    expect(await turn(host, session, "1 s4 s1")).toBe("budget tree.tokens: 500 of 450 are used");
    expect((await world.workers(session)).length).toBe(1);
    await using other = world.host({ budgets: { tree: { turns: 1 } }, hostId: "other" });
    const lone = await other.createSession();
    expect(await turn(other, lone, "s1")).toBe("COMPLETED");
    const why = "it could not be started: budget tree.turns: 1 of 1 are used; nothing was done";
    expect(await outputs(other, lone)).toEqual([`OUTPUT failed: the sub-agent has no answer: ${why}`]);
  });

  it("is the project's", async () => {
    const world = newWorld();
    const budgets: BudgetConfig = { project: { tokens: 350 } };
    await using host = world.host({ budgets });
    const session = await host.createSession({ project: "shop" });
    expect(await turn(host, session, "1 s3 1")).toBe("budget project.tokens: 400 of 350 are used");
    expect(await turn(host, await host.createSession({ project: "other" }), "1")).toBe("COMPLETED");
    await using next = world.host({ budgets, hostId: "next" });
    expect(await turn(next, await next.createSession({ project: "shop" }), "1")).toContain("budget project.tokens: 400 of 350");
  });
});
