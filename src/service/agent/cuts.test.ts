import { describe, expect, it } from "vitest";
import { DoorTransport, type Cut } from "../../../e2e/support/door-transport.ts";
import { DOOR_STORES, doorWorld, environmentWith, pureTool, scriptedModel, type DoorStore } from "../../../e2e/support/door.ts";
import { sessionUidOf } from "../../base/index.ts";
import { createClient } from "../../client/index.ts";
import { CONTROLLER_LIMITS } from "../../controller/index.ts";
import { responseBytes } from "../../gateway/grpc/frames.ts";
import { DyingStore, type Death } from "../../testing/dying-store.ts";
import type { DoorHost } from "../../testing/door-world.ts";

/** What became of a turn with thinking, text, two tools and a question. */
interface Outcome {
  readonly text: string;
  readonly thinking: string;
  readonly ended: readonly string[];
  /** The tools that the client ran, each once a call. */
  readonly ran: readonly string[];
  readonly questions: readonly string[];
  readonly errors: readonly string[];
  readonly story: readonly string[];
  readonly replays: readonly string[];
  readonly modelCalls: number;
}

interface Run {
  readonly outcome: Outcome;
  readonly count: DoorTransport["count"];
}

const SCRIPT = [
  { thinking: "Hm, a door.", pieces: ["Let me ", "look. "], calls: [["look", "c1", { at: "door" }]] as const },
  { pieces: ["Now I ", "push. "], calls: [["push", "c2", {}]] as const },
  { pieces: ["It is ", "open 🚪."], stopReason: "stop" },
];

interface Fate {
  readonly cut?: Cut | undefined;
  /** The host is another one after the cut. */
  readonly restarts?: boolean | undefined;
  /** The first host dies at one of its appends, and its line with it. */
  readonly death?: Death | undefined;
}

/** Runs the turn with the SDK's client. */
async function run(store: DoorStore, { cut, restarts = false, death }: Fate = {}): Promise<Run> {
  const model = scriptedModel(...SCRIPT);
  const environments = [environmentWith({ permissions: [{ tool: "push", policy: "require_confirmation" }] })];
  await using at = await doorWorld(store, { models: model, environments });
  const dying = death === undefined ? undefined : new DyingStore(at.journal, death);
  let host: DoorHost = at.host(dying === undefined ? {} : { journal: dying.view() });
  const transport = new DoorTransport({
    service: () => host.service,
    ports: at.ports,
    cut,
    onCut: async () => {
      if (!restarts) return;
      await host[Symbol.asyncDispose]();
      if (dying !== undefined) at.ports.clock.advance(CONTROLLER_LIMITS.leaseMs);
      host = at.host();
    },
  });
  // Updates that are held back to a rate go out as time passes.
  let isAlive = true;
  const passing = setInterval(() => {
    at.ports.clock.advance(100);
    if (!isAlive || dying?.dead !== true) return;
    isAlive = false;
    transport.drop();
  }, 5);
  try {
    const client = createClient({ transport });
    await using session = client.agent.session({ start: { tools: [pureTool("look"), pureTool("push")] } });
    session.say({ content: "Is it open?", messageId: "m1" });
    const seen = { text: "", thinking: "", ended: [] as string[], ran: [] as string[], questions: [] as string[], errors: [] as string[] };
    for await (const event of session) {
      switch (event.kind) {
        case "text":
        case "thinking":
          seen[event.kind] += event.delta.content;
          break;
        case "retracted":
          for (const kind of ["text", "thinking"] as const) seen[kind] = seen[kind].slice(0, seen[kind].length - event.chars[kind]);
          break;
        case "tool-request":
          seen.ran.push(`${event.request.toolName} ${event.request.toolCallId}`);
          session.answer(event.request.toolCallId, { success: true, result: "ok", exitCode: 0 });
          break;
        case "question":
          seen.questions.push(event.callId);
          session.decide(event.callId, true);
          break;
        case "turn-complete":
          seen.ended.push(`${event.turn.messageId} ${event.turn.stopReason} ${event.turn.usage?.inputTokens}`);
          break;
        case "error":
          seen.errors.push(event.error.code);
          break;
        default:
      }
      if (seen.ended.length > 0 && !session.isBusy) break;
    }
    const uid = sessionUidOf(session.uid!);
    const story = (await host.host.story(uid)).filter((word) => !word.startsWith("USAGE"));
    return { outcome: { ...seen, story, replays: await at.checks(uid), modelCalls: model.requests.length }, count: transport.count };
  } finally {
    clearInterval(passing);
    await host[Symbol.asyncDispose]();
  }
}

/** What a restart leaves as it is: a model call that its host left is made once more, and a turn that was about to park has not been suspended. */
function comparable(outcome: Outcome): object {
  return { ...outcome, modelCalls: undefined, story: outcome.story.filter((word) => !word.startsWith("LIFECYCLE")) };
}

const WHOLE = {
  text: "Let me look. Now I push. It is open 🚪.",
  thinking: "Hm, a door.",
  ended: ["m1 end_turn 30"],
  ran: ["look c1", "push c2"],
  questions: ["c2"],
  errors: [],
  replays: ["same"],
  modelCalls: 3,
};

describe.each(DOOR_STORES)("a turn with text, thinking, two tools and a question, over %s", (store) => {
  it("is as it is where its line is not cut", async () => {
    const { outcome } = await run(store);
    expect(outcome).toMatchObject(WHOLE);
    expect(outcome.story).toEqual([
      "EXECUTION_START",
      "INPUT Is it open?",
      "MODEL_CALL",
      "OUTPUT reasoningLet me look. toolCall",
      "TOOL_CALL c1",
      "TOOL_RESULT c1",
      "MODEL_CALL",
      "OUTPUT Now I push. toolCall",
      "TOOL_CALL c2",
      "APPROVAL_REQUEST c2",
      expect.stringMatching(/^LIFECYCLE 1/),
      "APPROVAL_RESULT c2 true",
      expect.stringMatching(/^LIFECYCLE 2/),
      "TOOL_RESULT c2",
      "MODEL_CALL",
      "OUTPUT It is open 🚪.",
      "END COMPLETED",
    ]);
  });

  it.each([false, true])(
    "is the same wherever its line is cut, in either direction (host restarted: %s)",
    { timeout: 60_000 },
    async (restarts) => {
      const { outcome: uncut, count } = await run(store);
      // What is held back makes the number of messages vary a little.
      const cuts = (["sent", "received"] as const).flatMap((at) =>
        (["lost", "had"] as const).flatMap((effect) =>
          Array.from({ length: count[at] }, (_, index): Cut => ({ at, effect, message: index + 1 })),
        ),
      );
      expect(cuts.length).toBeGreaterThan(40);
      for (const cut of cuts) {
        // Whether there is a session nobody can say: to ask for one again is the client's user's decision.
        if (cut.at === "received" && cut.message === 1) continue;
        const { outcome } = await run(store, { cut, restarts });
        if (!restarts) expect({ cut, ...outcome }).toEqual({ cut, ...uncut });
        else expect({ cut, ...comparable(outcome) }).toEqual({ cut, ...comparable(uncut) });
        expect(outcome.modelCalls).toBeLessThanOrEqual(uncut.modelCalls + (restarts ? 1 : 0));
      }
    },
  );
});

describe("a host that dies at an append of such a turn", () => {
  it.each(["before", "after"] as const)(
    "%s it is durable leaves what the next one ends as if nothing had been",
    { timeout: 60_000 },
    async (when) => {
      const { outcome: uncut } = await run("memory");
      // One append begins the turn. Before that nobody can say whether there is one.
      for (let atAppend = 2; atAppend <= 14; atAppend++) {
        const { outcome } = await run("memory", { death: { atAppend, when }, restarts: true });
        // A host that can still speak says that it could not do as it was told.
        expect(outcome.errors.every((code) => code === "internal")).toBe(true);
        expect({ atAppend, ...comparable({ ...outcome, errors: [] }) }).toEqual({ atAppend, ...comparable(uncut) });
        expect(outcome.modelCalls).toBeLessThanOrEqual(uncut.modelCalls + 1);
      }
    },
  );
});

it("the bytes of a response end with its cursor, which a client that does not know it passes over", () => {
  expect(
    [...responseBytes({ response: { $typeName: "roz.v1.SessionResponse", response: { case: undefined } }, seq: 7 as never })][0],
  ).toEqual(new Uint8Array([0xc2, 0xa9, 0x07, 2, 8, 7]));
});
