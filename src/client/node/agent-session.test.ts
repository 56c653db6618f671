import { describe, expect, it, onTestFinished } from "vitest";
import { PlayedAgent, servePlayed, type Cut, type Play } from "../../../e2e/support/played-agent.ts";
import { createClient, type AgentSession, type AgentSessionEvent, type AgentSessionOptions } from "../index.ts";
import { createNodeTransport } from "./index.ts";

/** A conversation over connections that break, against a real gRPC server that plays the other side. */

/** Text, reasoning, two tools and a permission question. */
async function busyTurn(play: Play): Promise<void> {
  await play.delta("thinkingDelta", "Let me ");
  await play.delta("thinkingDelta", "look.");
  await play.delta("textDelta", "I look ");
  await play.delta("textDelta", "first. ");
  await play.commit();
  const [one, two] = await Promise.all([play.tool("a", "read", { path: "a.txt" }), play.tool("b", "read", { path: "b.txt" })]);
  await play.delta("textDelta", `Got ${one.result} `);
  await play.delta("textDelta", `and ${two.result}. `);
  await play.commit();
  const mayWrite = await play.ask("c");
  await play.delta("textDelta", mayWrite ? "Written." : "Not written.");
  await play.commit();
  await play.complete("end_turn");
}

/** What a person would have seen, and what was run. */
interface Transcript {
  text: string;
  thinking: string;
  readonly ran: string[];
  readonly asked: string[];
  readonly ended: string[];
  readonly errors: string[];
}

async function sessionWith(agent: PlayedAgent, options: AgentSessionOptions = {}): Promise<AgentSession> {
  const client = createClient({ transport: createNodeTransport({ address: await servePlayed(agent) }) });
  onTestFinished(() => client[Symbol.asyncDispose]());
  const session = client.agent.session({ reconnect: { delayMinMs: 1, delayMaxMs: 5 }, ...options });
  onTestFinished(() => session[Symbol.asyncDispose]());
  return session;
}

/** Answers as a person and their tools would, and keeps what they saw. Ends with the turn. */
async function follow(session: AgentSession, onEvent: (event: AgentSessionEvent) => void = () => undefined): Promise<Transcript> {
  const seen: Transcript = { text: "", thinking: "", ran: [], asked: [], ended: [], errors: [] };
  for await (const event of session) {
    onEvent(event);
    switch (event.kind) {
      case "text":
      case "thinking":
        seen[event.kind] += event.delta.content;
        break;
      case "retracted":
        seen.text = seen.text.slice(0, seen.text.length - event.chars.text);
        seen.thinking = seen.thinking.slice(0, seen.thinking.length - event.chars.thinking);
        break;
      case "tool-request":
        seen.ran.push(event.request.toolCallId);
        session.answer(event.request.toolCallId, { success: true, result: JSON.stringify(event.request.parameters?.["path"]) });
        break;
      case "question":
        seen.asked.push(event.callId);
        session.decide(event.callId, true);
        break;
      case "turn-complete":
        seen.ended.push(event.turn.stopReason);
        return seen;
      case "error":
        // What was sent twice because it may have been lost is refused the second time.
        if (event.error.code !== "unknown_tool_call") seen.errors.push(event.error.code);
        break;
      case "started":
      case "keepalive":
      case "pong":
      case "compacted":
      case "presence":
      case "activity":
      case "cursor":
      case "connection":
      case "refused":
    }
  }
  return seen;
}

const WHOLE: Transcript = {
  text: 'I look first. Got "a.txt" and "b.txt". Written.',
  thinking: "Let me look.",
  ran: ["a", "b"],
  asked: ["c"],
  ended: ["end_turn"],
  errors: [],
};

/** The turn with the connection cut there; how many messages went each way. */
async function cutAt(cut: Cut | undefined): Promise<{ readonly transcript: Transcript; readonly agent: PlayedAgent }> {
  const agent = new PlayedAgent(busyTurn, cut);
  const session = await sessionWith(agent);
  session.say("go");
  return { transcript: await follow(session), agent };
}

describe("a conversation", () => {
  it("is told as it comes, and each call is answered once", async () => {
    const { transcript, agent } = await cutAt(undefined);
    expect(transcript).toEqual(WHOLE);
    expect(agent.received.map(({ request }) => request.case)).toEqual([
      "start",
      "userMessage",
      "toolResult",
      "toolResult",
      "permissionDecision",
    ]);
    expect(agent.attachments).toBe(1);
  });

  it("is the same wherever its connection is cut, in either direction", { timeout: 60_000 }, async () => {
    const { agent } = await cutAt(undefined);
    const cuts = (["sent", "received"] as const).flatMap((at) =>
      (["lost", "had"] as const).flatMap((effect) =>
        Array.from({ length: agent.count[at] }, (_, index): Cut => ({ at, effect, message: index + 1 })),
      ),
    );
    expect(cuts.length).toBeGreaterThan(40);
    for (const cut of cuts) {
      // Nobody can say whether there is a session: to ask for one again is the caller's decision.
      if (cut.at === "received" && cut.message === 1 && cut.effect === "lost") {
        await expect(cutAt(cut)).rejects.toMatchObject({ code: "unavailable" });
        continue;
      }
      const { transcript, agent: played } = await cutAt(cut);
      expect({ cut, ...transcript, ran: transcript.ran.toSorted() }).toEqual({ cut, ...WHOLE });
      const turns = played.received.filter(({ request }) => request.case === "userMessage");
      expect({
        cut,
        turns: new Set(turns.map(({ request }) => (request.case === "userMessage" ? request.value.messageId : ""))).size,
      }).toEqual({
        cut,
        turns: 1,
      });
    }
  });

  it("takes back what a model call that was made anew says differently", async () => {
    const agent = new PlayedAgent(
      async (play) => {
        await play.delta("textDelta", "The answer ");
        await play.delta("textDelta", "is 41.");
        play.again();
        await play.delta("textDelta", "The answer is");
        await play.delta("textDelta", " 42");
        await play.commit();
        await play.complete("end_turn");
      },
      { at: "sent", message: 4, effect: "had" },
    );
    const session = await sessionWith(agent);
    session.say("go");
    const retracted: AgentSessionEvent[] = [];
    const transcript = await follow(session, (event) => event.kind === "retracted" && retracted.push(event));
    expect(transcript.text).toBe("The answer is 42");
  });

  it("says when its connection is lost and when it is back", async () => {
    const agent = new PlayedAgent(busyTurn, { at: "sent", message: 4, effect: "lost" });
    const session = await sessionWith(agent);
    session.say("go");
    const states: string[] = [];
    await follow(session, (event) => event.kind === "connection" && states.push(event.state));
    expect(states).toEqual(["lost", "restored"]);
  });

  it("goes on elsewhere with the uid and the cursor", async () => {
    const agent = new PlayedAgent(busyTurn);
    const address = await servePlayed(agent);
    const client = createClient({ transport: createNodeTransport({ address }) });
    onTestFinished(() => client[Symbol.asyncDispose]());
    const first = client.agent.session();
    first.say("go");
    let head = "";
    for await (const event of first) {
      if (event.kind === "text") head += event.delta.content;
      if (event.kind === "tool-request") break;
    }
    const { uid, cursor } = first;
    expect(uid).toBe(agent.uid);
    await first[Symbol.asyncDispose]();
    const second = client.agent.session({ session: uid, fromSeq: cursor });
    onTestFinished(() => second[Symbol.asyncDispose]());
    const rest = await follow(second);
    expect({ ...rest, text: head + rest.text, ran: rest.ran.toSorted() }).toEqual({ ...WHOLE, thinking: "" });
  });

  it("has one turn of its own at a time", async () => {
    const session = await sessionWith(new PlayedAgent(busyTurn));
    session.say("go");
    expect(() => session.say("more")).toThrow(expect.objectContaining({ code: "failed_precondition" }));
    await follow(session);
  });

  it("rejects at once where nobody serves it, and where it is not to reconnect", async () => {
    const transport = createNodeTransport({ address: "127.0.0.1:1" });
    const client = createClient({ transport });
    onTestFinished(() => client[Symbol.asyncDispose]());
    await expect(follow(client.agent.session())).rejects.toMatchObject({ code: "unavailable" });
    const agent = new PlayedAgent(busyTurn, { at: "sent", message: 3, effect: "lost" });
    const session = await sessionWith(agent, { reconnect: false });
    session.say("go");
    await expect(follow(session)).rejects.toMatchObject({ code: "unavailable" });
  });

  it("ends with its signal, and when it is left", async () => {
    const leaving = new AbortController();
    const session = await sessionWith(new PlayedAgent(busyTurn), { signal: leaving.signal });
    session.say("go");
    await expect(follow(session, (event) => event.kind === "thinking" && leaving.abort(new Error("enough")))).rejects.toThrow("enough");
    const other = await sessionWith(new PlayedAgent(busyTurn));
    const ended = follow(other, (event) => event.kind === "started" && void other[Symbol.asyncDispose]());
    expect((await ended).ended).toEqual([]);
  });
});
