/**
 * A conversation of the SDK with a real server, its line cut at every message in either direction of a turn with text, reasoning, two tools and a
 * question: what the client has afterwards equals what it has without a cut, each tool ran once, and the journal is the same.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SILENT_LOG } from "../src/base/index.ts";
import { createClient, ToolCategoryHint, type AgentSession, type LogRecord } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { startServer, type RunningServer } from "../src/server/index.ts";
import { readConfig } from "../src/server/config.ts";
import { cutTransport, type Cut, type Traffic } from "./support/cut-transport.ts";

const SCRIPT = `
completions:
  - on: { step: 1 }
    reasoning: "Two files and a note."
    text: ["I look ", "at ", "both."]
    calls: [{ tool: look, args: { at: a }, id: a }, { tool: look, args: { at: b }, id: b }]
  - on: { step: 2 }
    text: ["Now ", "I note."]
    calls: [{ tool: note, args: { text: n }, id: n }]
  - on: { step: 3 }
    text: ["All ", "is ", "done."]
`;

const TOOLS = ["look", "note"].map((name) => ({ name, description: name, category: ToolCategoryHint.TOOL_CATEGORY_PURE }));

let server: RunningServer;
const folder = mkdtempSync(join(tmpdir(), "holdfast-cuts-"));

beforeAll(async () => {
  const config = join(folder, "holdfast.json");
  const permissions = [{ tool: "note", policy: "require_confirmation" }];
  writeFileSync(join(folder, "model.yaml"), SCRIPT);
  writeFileSync(config, JSON.stringify({ model: `script:${join(folder, "model.yaml")}`, environments: { asking: { permissions } } }));
  const read = readConfig({ listen: "127.0.0.1:0", store: "memory", config, registryListen: "off" }, {});
  server = await startServer(read, { log: SILENT_LOG });
});
afterAll(async () => {
  await server.shutdown({ graceMs: 0 });
  rmSync(folder, { recursive: true });
});

/** What a client has of a turn. */
interface Had {
  text: string;
  thinking: string;
  readonly ran: string[];
  readonly asked: string[];
  readonly ended: string[];
  readonly errors: string[];
}

/** Follows one turn, with tools that are run at once and a person who allows everything. */
async function follow(session: AgentSession): Promise<Had> {
  const had: Had = { text: "", thinking: "", ran: [], asked: [], ended: [], errors: [] };
  for await (const event of session) {
    switch (event.kind) {
      case "text":
      case "thinking":
        had[event.kind] += event.delta.content;
        break;
      case "retracted":
        had.text = had.text.slice(0, had.text.length - event.chars.text);
        had.thinking = had.thinking.slice(0, had.thinking.length - event.chars.thinking);
        break;
      case "tool-request":
        had.ran.push(event.request.toolCallId);
        session.answer(event.request.toolCallId, { success: true, result: `seen ${event.request.toolCallId}` });
        break;
      case "question":
        had.asked.push(event.callId);
        session.decide(event.callId, true);
        break;
      case "error":
        had.errors.push(event.error.code);
        break;
      case "turn-complete":
        had.ended.push(event.turn.stopReason);
        return had;
      default:
    }
  }
  return had;
}

/** A turn over a line that is cut there: what its client has, and what its journal. */
async function turnWith(
  cut: Cut | undefined,
): Promise<{ readonly had: Had; readonly journal: readonly string[]; readonly traffic: Traffic }> {
  const { transport, traffic } = cutTransport(createNodeTransport({ address: server.url }), cut);
  await using client = createClient({ transport });
  await using session = client.agent.session({
    start: { environmentId: "asking", tools: TOOLS },
    reconnect: { delayMinMs: 1, delayMaxMs: 5 },
  });
  session.say("go");
  const had = await follow(session);
  had.ran.sort();
  const journal: string[] = [];
  for await (const { record } of client.sessions.replay(session.uid ?? "")) journal.push(told(record));
  return { had, journal: inOrder(journal), traffic };
}

/** A record without what is of its run alone. */
function told({ event }: LogRecord): string {
  const body = event?.body;
  switch (body?.case) {
    case "message":
      return `message ${body.value.parts.map(({ part }) => (part.case === "text" ? part.value.text : (part.case ?? ""))).join(" ")}`;
    case "tool":
    case "result":
      return `${body.case} ${body.value.id}`;
    case "lifecycle":
      return `lifecycle ${body.value.kind}`;
    default:
      return body?.case ?? "nothing";
  }
}

/** Results of calls that ran at once are recorded as they came. */
function inOrder(journal: readonly string[]): readonly string[] {
  const results = journal.filter((line) => line.startsWith("result ")).toSorted();
  return journal.map((line) => (line.startsWith("result ") ? (results.shift() ?? line) : line));
}

it("is the same wherever its line is cut", { timeout: 300_000 }, async () => {
  const uncut = await turnWith(undefined);
  expect(uncut.had).toEqual({
    text: "I look at both.Now I note.All is done.",
    thinking: "Two files and a note.",
    ran: ["a", "b", "n"],
    asked: ["n"],
    ended: ["end_turn"],
    errors: [],
  });
  const cuts = (["request", "response"] as const).flatMap((at) =>
    [true, false].flatMap((isLost) => Array.from({ length: uncut.traffic[at] }, (_, index): Cut => ({ at, isLost, message: index + 1 }))),
  );
  expect(cuts.length).toBeGreaterThan(40);
  for (const cut of cuts) {
    if (cut.at === "request" && cut.message === 1) {
      // Nobody can say whether there is a session: to ask for another is the caller's decision.
      await expect(turnWith(cut)).rejects.toMatchObject({ code: "unavailable" });
      continue;
    }
    const { had, journal } = await turnWith(cut);
    expect({ cut, had }).toEqual({ cut, had: uncut.had });
    expect({ cut, journal }).toEqual({ cut, journal: uncut.journal });
  }
});

it("says that a message was refused, and takes the next one", async () => {
  await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
  await using session = client.agent.session({ start: { environmentId: "asking", tools: TOOLS } });
  const refusedId = session.say({ content: "go", aiMode: "ooda_re_act" });
  const kinds: string[] = [];
  for await (const event of session) {
    if (event.kind === "error") kinds.push(event.error.code);
    if (event.kind === "refused") {
      expect(event.messageId).toBe(refusedId);
      expect(session.isBusy).toBe(false);
      session.say("go");
    }
    if (event.kind === "tool-request") session.answer(event.request.toolCallId, { success: true, result: "seen" });
    if (event.kind === "question") session.decide(event.callId, false);
    if (event.kind === "turn-complete") {
      kinds.push(event.turn.stopReason);
      break;
    }
  }
  expect(kinds).toEqual(["invalid_argument", "end_turn"]);
});
