import { describe, expect, it } from "vitest";
import { CONTROLLER_LIMITS } from "../../controller/index.ts";
import { create } from "@bufbuild/protobuf";
import type { SessionUid } from "../../base/index.ts";
import { IdentityRefSchema, MessageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { messageText, textMessage } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { AgentWorld, agentConfig, DyingStore, resumed, sayingModel, TestTools, type Saying, type TestHost } from "../../testing/index.ts";
import { createAgentHarness } from "./index.ts";

const CONFIG = { tools: { free: ["*"] }, steering: true };
const ada = create(IdentityRefSchema, { issuer: "here", subject: "ada" });

/** A world whose tool `look` does, while it runs, what a test says. */
function world(sayings: readonly Saying[], whileLooking: () => Promise<void> = async () => undefined) {
  const tools = new TestTools({
    look: {
      idempotent: true,
      run: async () => {
        await whileLooking();
        return { output: { seen: true } };
      },
    },
  });
  const openJournal = ({ clock, digest }: Parameters<typeof createMemoryStore>[0]) => createMemoryStore({ clock, digest });
  return new AgentWorld({
    openJournal,
    agent: createAgentHarness(),
    model: sayingModel((_, index) => sayings[index] ?? { text: "done" }),
    tools,
  });
}

async function turn(host: TestHost, session: SessionUid, input: string, config: object = CONFIG) {
  return (await host.begin(session, [input], { config: agentConfig(config) })).outcome;
}

const said = (at: AgentWorld) => at.model.requests.map(({ messages }) => messages.map((message) => messageText(message) || "…"));

describe("messages to an agent's running turn", () => {
  it("are before the model at its next call, and their senders are told where they stand", async () => {
    const taken: Promise<{ seq: number }>[] = [];
    const at = world([{ calls: [["look", "a", {}]] }], async () => {
      for (const text of ["look left", "and right"])
        taken.push(host.controller.steer({ session, message: textMessage("user", text), from: ada }));
    });
    await using host = at.host();
    const session = await host.createSession();
    expect(await turn(host, session, "look")).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(said(at)).toEqual([["look"], ["look", "…", "…", "look leftand right"]]);
    const story = await host.story(session);
    expect(story.filter((line) => /TOOL|END/.test(line))).toEqual([
      "TOOL_CALL a",
      "TOOL_RESULT a",
      "TOOL_CALL inbox",
      "TOOL_RESULT inbox",
      "TOOL_CALL inbox~2",
      "TOOL_RESULT inbox~2",
      "END COMPLETED",
    ]);
    const [one, two] = await Promise.all(taken);
    expect(one!.seq).toBe(two!.seq);
    expect((await host.records(session))[one!.seq - 1]!.event!.body.value).toMatchObject({
      id: "inbox",
      output: { messages: [{ from: "ada" }, { from: "ada" }] },
    });
    expect(await at.checks(session)).toEqual(["same"]);
  });

  it("make a turn go on that had its answer, and stay in the conversation", async () => {
    const at = world([{ text: "first" }, { text: "second" }, { text: "third" }]);
    await using host = at.host();
    const session = await host.createSession();
    const running = await host.begin(session, ["go"], { config: agentConfig(CONFIG) });
    const sent = host.controller.steer({ session, message: textMessage("user", "more"), from: undefined });
    expect(await running.outcome).toMatchObject({ state: "COMPLETED" });
    await sent;
    expect(said(at).at(-1)).toEqual(["go", "first", "more"]);
    await turn(host, session, "and?");
    expect(said(at).at(-1)).toEqual(["go", "first", "more", "second", "and?"]);
    expect(await at.checks(session)).toEqual(["same", "same"]);
  });

  it("are refused where no turn runs, and given back where a turn ends without asking", async () => {
    const at = world([]);
    await using host = at.host();
    const session = await host.createSession();
    const steer = () => host.controller.steer({ session, message: textMessage("user", "hello?"), from: undefined });
    await expect(steer()).rejects.toThrow("session: no turn of it runs on this host; give the message to a turn as its input");
    const running = await host.begin(session, ["go"], { config: agentConfig({}) });
    await expect(steer()).rejects.toThrow("session: its turn ended before it asked for messages; give the message to a turn as its input");
    expect(await running.outcome).toMatchObject({ state: "COMPLETED" });
    expect((await host.story(session)).join()).not.toContain("inbox");
  });

  it("are withdrawn by a sender who goes away", async () => {
    const leaving = new AbortController();
    const at = world([{ calls: [["look", "a", {}]] }], async () => {
      const sent = host.controller.steer(
        { session, message: textMessage("user", "never mind"), from: undefined },
        { signal: leaving.signal },
      );
      leaving.abort(new Error("gone"));
      await expect(sent).rejects.toThrow();
    });
    await using host = at.host();
    const session = await host.createSession();
    await turn(host, session, "look");
    expect(said(at).at(-1)).toEqual(["look", "…", "…"]);
  });

  it.each([
    [undefined, "message: must be given"],
    [textMessage("system", "obey"), "message.role: must be user"],
    [create(MessageSchema, { role: "user" }), "message.parts: must have one part at least"],
    [
      create(MessageSchema, { role: "user", parts: [{ part: { case: "toolResult", value: { id: "a" } } }] }),
      "message.parts[0]: must be text, data or a file",
    ],
    [textMessage("user", "x".repeat(70_000)), "message: must have at most 65536 bytes"],
  ])("are the user's and of a bounded size: %#", async (message, fault) => {
    const at = world([]);
    await using host = at.host();
    const session = await host.createSession();
    await expect(host.controller.steer({ session, message, from: undefined })).rejects.toThrow(fault);
  });

  it("come to the same wherever the host is killed, and are lost unacknowledged or there once", async () => {
    for (let atAppend = 2, dead = true; dead; atAppend += 1) {
      let acknowledged = false;
      let send = (): void => undefined;
      const at = world([{ calls: [["look", "a", {}]] }], async () => send());
      const store = new DyingStore(at.journal, { atAppend, when: "after" });
      const dying = at.host({ journal: store.view(), hostId: "dying" });
      const session = await dying.createSession();
      send = () => {
        const message = textMessage("user", "psst");
        void dying.controller.steer({ session, message, from: undefined }).then(
          () => (acknowledged = true),
          () => undefined,
        );
      };
      await turn(dying, session, "look");
      await dying[Symbol.asyncDispose]();
      dead = store.dead;
      at.ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
      const before = acknowledged;
      send = () => undefined;
      const host = at.host({ hostId: "next" });
      await resumed(host, session);
      await host[Symbol.asyncDispose]();
      expect(await at.checks(session)).toEqual(["same"]);
      const texts = said(at)
        .at(-1)!
        .filter((text) => text === "psst");
      expect(texts.length).toBeLessThanOrEqual(1);
      if (before)
        expect(
          JSON.stringify(await host.records(session), (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value)),
        ).toContain("psst");
    }
  });
});
