import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import type { AgentSessionEvent } from "../../client/index.ts";
import {
  SessionErrorSchema,
  SessionStartedSchema,
  TextDeltaSchema,
  ThinkingDeltaSchema,
  ToolRequestSchema,
  TurnCompleteSchema,
} from "../../gen/roz/v1/agent_pb.ts";
import { ChatCore, HELD_MAX } from "./chat-core.ts";
import type { Effect } from "./printed.ts";
import { LOCAL_TOOLS, type Consent } from "./tools/index.ts";

/** The chat without a terminal: what happens goes in, what it prints and wants done comes out. */

const STARTED: AgentSessionEvent = { kind: "started", started: create(SessionStartedSchema, { sessionId: "s" }) };
const text = (content: string): AgentSessionEvent => ({ kind: "text", delta: create(TextDeltaSchema, { content }) });
const thought = (content: string): AgentSessionEvent => ({ kind: "thinking", delta: create(ThinkingDeltaSchema, { content }) });
const request = (toolCallId: string, toolName: string): AgentSessionEvent => ({
  kind: "tool-request",
  request: create(ToolRequestSchema, { toolCallId, toolName, parameters: { path: "a" } }),
});
const complete = (init: MessageInitShape<typeof TurnCompleteSchema> = {}): AgentSessionEvent => ({
  kind: "turn-complete",
  turn: create(TurnCompleteSchema, { stopReason: "end_turn", ...init }),
});
const seen = (consent: Consent, summary = "write a") => ({ summary, details: "+ all", consent });

function bench({ isPiped = false, always = [] as readonly string[] } = {}) {
  const core = new ChatCore({ tools: LOCAL_TOOLS, always, mode: undefined, isPiped });
  /** What came out, in short words. */
  const out = (): string[] => core.takeEffects().map(short);
  core.onEvent(STARTED);
  out();
  return { core, out };
}

function short(effect: Effect): string {
  if (effect.kind !== "print")
    return Object.values(effect)
      .filter((value) => typeof value !== "object")
      .join(" ");
  const { printed } = effect;
  switch (printed.kind) {
    case "answer":
      return `answer ${printed.block.text.trim()}`;
    case "call":
      return `call ${printed.summary}`;
    case "outcome":
      return `outcome ${printed.outcome.result}`;
    case "lines":
      return `lines ${printed.lines.length}`;
    default:
      return `${printed.kind} ${printed.text}`;
  }
}

/** A core in whose turn `write` was asked for, and asks. */
function asking(consent: Consent = "ask") {
  const { core, out } = bench();
  core.onLine("go");
  core.onEvent(request("c", "write"));
  out();
  core.onPrepared("c", seen(consent), false);
  return { core, out };
}

/** Presses a key at the question about `c`, alone. */
function press(core: ChatCore, key: string): void {
  core.onAnswerKey(key);
  core.onQuiet("c");
}

describe("messages", () => {
  it("are sent at once, and held while a turn runs", () => {
    const { core, out } = bench();
    core.onLine("one");
    expect(out()).toEqual(["said one", "say one"]);
    core.onLine("two");
    expect(out()).toEqual([]);
    expect(core.status.held).toEqual(["two"]);
    core.onEvent(complete());
    expect(out()).toEqual(["stop-tools", "end-turn", "said two", "say two"]);
  });

  it("are held up to a number", () => {
    const { core, out } = bench();
    for (let index = 0; index <= HELD_MAX; index++) core.onLine(`m${index}`);
    out();
    core.onLine("one too many");
    expect(out()).toEqual([expect.stringContaining("was not taken")]);
  });

  it("that were written before the session stood are sent when it does", () => {
    const core = new ChatCore({ tools: [], always: [], mode: undefined, isPiped: false });
    core.onLine("early");
    expect(core.takeEffects()).toEqual([]);
    core.onEvent(STARTED);
    expect(core.takeEffects().map(short)).toEqual(["said early", "say early"]);
  });

  it("that are refused begin no turn, and the next one is sent", () => {
    const { core, out } = bench();
    core.onLine("one");
    core.onLine("two");
    out();
    core.onEvent({
      kind: "error",
      error: create(SessionErrorSchema, { code: "invalid_argument", message: "content: is too long" }),
      seq: 1n,
    });
    core.onEvent({ kind: "refused", messageId: "m" });
    expect(out()).toEqual(["problem content: is too long (invalid_argument)", "stop-tools", "end-turn", "said two", "say two"]);
  });

  it("may begin with a slash", () => {
    const { core, out } = bench();
    core.onLine("//etc is a folder");
    expect(out()).toEqual(["said /etc is a folder", "say /etc is a folder"]);
  });
});

describe("the answer", () => {
  it("is printed block by block, reasoning before it line by line", () => {
    const { core, out } = bench();
    core.onLine("go");
    out();
    for (const event of [thought("first\nsec"), thought("ond"), text("**One**"), text("\n\nTwo")]) core.onEvent(event);
    expect(out()).toEqual(["thought first", "thought second", "answer **One**"]);
    expect(core.unfinished).toMatchObject({ kind: "answer", block: { text: "Two" } });
    core.onEvent(complete());
    expect(out()[0]).toBe("answer Two");
  });

  it("is taken back where it was not printed, and told of where it was", () => {
    const { core, out } = bench();
    core.onLine("go");
    core.onEvent(text("Out.\n\nNot out"));
    out();
    core.onEvent({ kind: "retracted", chars: { text: 3, thinking: 0 } });
    expect(out()).toEqual([]);
    core.onEvent({ kind: "retracted", chars: { text: 7, thinking: 0 } });
    expect(out()).toEqual([expect.stringContaining("asked again")]);
  });

  it("goes out as it comes where nobody sits at a terminal", () => {
    const { core, out } = bench({ isPiped: true });
    core.onLine("go");
    out();
    for (const event of [thought("hm"), text("**a"), text("b**")]) core.onEvent(event);
    expect(out()).toEqual(["raw **a", "raw b**"]);
  });

  it("says why a turn ended otherwise than it should", () => {
    const { core, out } = bench();
    core.onLine("go");
    out();
    core.onEvent(complete({ stopReason: "max_tokens" }));
    expect(out()).toContain("note the turn ended: max tokens");
  });
});

describe("tool calls", () => {
  it("that only look run at once", () => {
    const { core, out } = bench();
    core.onLine("go");
    core.onEvent(request("r", "read"));
    core.onPrepared("r", seen("none", "read a"), false);
    expect(out().slice(2)).toEqual(["prepare r read 0", "run r"]);
    expect(core.status.running).toEqual(["read a"]);
    core.onOutcome("r", "read a", { success: true, result: "text" });
    expect(out()).toEqual(["call read a", "outcome text"]);
  });

  it("that change something ask, and one key answers once it can have been read", () => {
    const { core, out } = asking();
    expect(out()).toEqual(["call write a", "await-quiet c 300"]);
    core.onAnswerKey("y");
    expect(out()).toEqual(["await-quiet c 300"]);
    core.onQuiet("c");
    core.onAnswerKey("d");
    expect(out()).toEqual(["await-quiet c 150"]);
    core.onQuiet("c");
    expect(out()).toEqual(["details + all"]);
    core.onAnswerKey("y");
    core.onQuiet("c");
    expect(out()).toEqual(["await-quiet c 150", "note allowed", "run c"]);
    expect(core.question).toBeUndefined();
  });

  it("that change a file are asked about with what they change", () => {
    const { core, out } = bench();
    core.onLine("go");
    core.onEvent(request("c", "write"));
    out();
    core.onPrepared("c", { ...seen("ask"), hasDiff: true }, false);
    expect(out()).toEqual(["call write a", "details + all", "await-quiet c 300"]);
  });

  it("that are not allowed are answered as such", () => {
    const { core, out } = asking();
    core.onQuiet("c");
    out();
    press(core, "n");
    expect(out()).toEqual(["await-quiet c 150", "note not allowed", "refuse c the person at the terminal did not allow this call"]);
  });

  it("of a tool that was allowed for the session do not ask again, nor do those that wait", () => {
    const { core, out } = asking();
    core.onEvent(request("d", "write"));
    core.onPrepared("d", seen("ask", "write b"), false);
    core.onQuiet("c");
    out();
    press(core, "a");
    expect(out()).toEqual(["await-quiet c 150", "keep-always write", "note allowed, as every write in this session", "run c", "run d"]);
    core.onEvent(request("e", "write"));
    core.onPrepared("e", seen("ask"), false);
    expect(out()).toEqual(["prepare e write 0", "run e"]);
  });

  it("that touch secrets ask every time, and cannot be allowed for the session", () => {
    const { core, out } = asking("ask-always");
    core.onQuiet("c");
    out();
    press(core, "a");
    expect(out()).toEqual(["await-quiet c 300"]);
    expect(core.question?.canAlways).toBe(false);
  });

  it("that the server asks about are asked once, and run when they are allowed", () => {
    const { core, out } = bench();
    core.onLine("go");
    core.onEvent({ kind: "question", callId: "c" });
    core.onLookedUp("c", "write", seen("ask"));
    expect(out().slice(2)).toEqual(["look-up c", "call write a", "await-quiet c 300"]);
    core.onQuiet("c");
    press(core, "y");
    expect(out()).toEqual(["await-quiet c 150", "note allowed", "keep-allowed c", "decide c true"]);
    core.onEvent(request("c", "write"));
    core.onPrepared("c", seen("ask"), false);
    expect(out()).toEqual(["prepare c write 0", "run c"]);
  });

  it("that somebody else allowed are still this person's to say", () => {
    const { core, out } = bench();
    core.onLine("go");
    core.onEvent({ kind: "question", callId: "c" });
    core.onLookedUp("c", "write", seen("ask"));
    core.onEvent(request("c", "write"));
    expect(core.question).toBeUndefined();
    core.onPrepared("c", seen("ask"), false);
    expect(core.question?.by).toBe("chat");
    out();
  });

  it("that were allowed before the chat was started anew do not ask", () => {
    const { core, out } = bench();
    core.onOpenTurn();
    core.onEvent(request("c", "run"));
    core.onPrepared("c", seen("ask"), true);
    expect(out()).toEqual(["prepare c run 0", "run c"]);
  });

  it("of other tools are refused", () => {
    const { core, out } = bench();
    core.onEvent(request("c", "launch"));
    expect(out()).toEqual(["refuse c there is no tool launch here"]);
  });

  it("are not allowed where nobody can be asked, unless the tool is", () => {
    const { core, out } = bench({ isPiped: true, always: ["run"] });
    core.onLine("go");
    core.onEvent(request("c", "write"));
    core.onPrepared("c", seen("ask"), false);
    expect(out().slice(3)).toEqual([
      expect.stringContaining("--allow write"),
      expect.stringContaining("refuse c this call needs a person's permission"),
    ]);
    core.onEvent(request("d", "run"));
    core.onPrepared("d", seen("ask"), false);
    expect(out()).toEqual(["prepare d run 0", "run d"]);
  });
});

describe("Ctrl-C", () => {
  it("cancels the turn and what runs, and leaves the second time", () => {
    const { core, out } = asking();
    out();
    core.onInterrupt();
    expect(out()).toEqual(["stop-tools", "cancel-turn"]);
    expect(core.question).toBeUndefined();
    core.onInterrupt();
    expect(out()).toEqual(["leave"]);
  });

  it("leaves the second time where no turn runs, and a line in between counts", () => {
    const { core, out } = bench();
    core.onInterrupt();
    core.onLine("/mode");
    core.onInterrupt();
    expect(out().filter((effect) => effect === "leave")).toEqual([]);
    core.onInterrupt();
    expect(out()).toEqual(["leave"]);
  });

  it("is forgotten with its turn, and so are results that come after it", () => {
    const { core, out } = asking();
    core.onInterrupt();
    core.onEvent({ kind: "error", error: create(SessionErrorSchema, { code: "unknown_tool_call" }), seq: 1n });
    core.onEvent(complete({ stopReason: "cancelled" }));
    core.onOutcome("c", "write a", { success: false, result: "[it was cancelled]" });
    expect(out().slice(4)).toEqual(["note cancelled", "stop-tools", "end-turn"]);
    expect(core.status.isCancelling).toBe(false);
  });
});

describe("commands", () => {
  it("are echoed and answered", () => {
    const { core, out } = bench();
    core.onLine("/help");
    core.onLine("/tools");
    core.onLine("/usage");
    expect(out()).toEqual(["typed /help", "lines 11", "typed /tools", "lines 7", "typed /usage", "lines 3"]);
  });

  it("count the tokens of turns", () => {
    const { core, out } = bench();
    core.onLine("go");
    core.onEvent(complete({ usage: { inputTokens: 5, outputTokens: 2 } }));
    core.onLine("/usage");
    const [usage] = core.takeEffects().filter((effect) => effect.kind === "print" && effect.printed.kind === "lines");
    expect(usage).toMatchObject({
      printed: { lines: [expect.anything(), expect.stringMatching(/last turn +5 +2/), expect.stringMatching(/1 turn of this chat +5 +2/)] },
    });
    out();
  });

  it("of the server's hold messages back until they are done", () => {
    const { core, out } = bench();
    core.onLine("/rewind 2");
    expect(out()).toEqual(["typed /rewind 2", "command"]);
    core.onLine("next");
    core.onLine("/tree");
    expect(core.status.held).toEqual(["next", "/tree"]);
    core.onCommandDone({ lines: ["there"] });
    expect(out()).toEqual(["lines 1", "said next", "say next"]);
  });

  it("that change where the chat is wait until the turn is over", () => {
    const { core, out } = bench();
    core.onLine("go");
    core.onLine("/rewind 1");
    expect(core.status.held).toEqual(["/rewind 1"]);
    out();
    core.onEvent(complete());
    expect(out()).toEqual(["stop-tools", "end-turn", "typed /rewind 1", "command"]);
  });

  it("say what is wrong with them", () => {
    const { core, out } = bench();
    for (const line of ["/rewind", "/rewind x", "/fork 0", "/nothing", "/mode fast", "/show 99"]) core.onLine(line);
    expect(out().filter((effect) => effect.startsWith("problem")).length).toBe(6);
  });

  it("show a result again, whole", () => {
    const { core } = asking();
    core.onOutcome("c", "write a", { success: true, result: "r" });
    core.takeEffects();
    core.onLine("/show");
    expect(core.takeEffects().at(-1)).toMatchObject({ printed: { kind: "outcome", isWhole: true } });
  });

  it("forget what was allowed when the chat goes on in another session", () => {
    const { core, out } = asking();
    core.onQuiet("c");
    press(core, "a");
    core.onEvent(complete());
    core.onSwitched();
    core.onEvent(STARTED);
    core.onLine("go");
    core.onEvent(request("e", "write"));
    core.onPrepared("e", seen("ask"), false);
    expect(core.question?.callId).toBe("e");
    out();
  });
});
