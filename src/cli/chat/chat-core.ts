/**
 * The chat without a terminal, a file system or a network: what happens goes in, what is to be printed and done comes out. Pure.
 *
 * Invariant: a message that is written while a turn runs is held until the turn is over; one turn is asked for at a time.
 */

import type { AgentSessionEvent, PermissionRule, TurnComplete } from "../../client/index.ts";
import { AnswerText, type Unfinished } from "./answer-text.ts";
import { CallBoard, type SeenCall } from "./call-board.ts";
import { commandIn, helpLines, messageIn, toolLines, type Command } from "./commands.ts";
import type { Effect, Printed } from "./printed.ts";
import type { Question } from "./questions.ts";
import type { LocalTool, ToolOutcome } from "./tools/index.ts";
import { UsageCount } from "./usage-count.ts";

/** What a chat begins with. */
export interface ChatCoreOptions {
  /** The tools on offer; none with --no-tools. */
  readonly tools: readonly LocalTool[];
  /** Tools that are allowed in any session. */
  readonly always: readonly string[];
  readonly mode: string | undefined;
  /** Whether nobody sits at a terminal: the answer is printed as it comes, and nobody can be asked. */
  readonly isPiped: boolean;
}

/** Messages that may wait. */
export const HELD_MAX = 16;
const MODES = ["react", "ooda_re_act"];
const NO_ACTIVITY = { state: "idle", detail: "" };

/** What the status line tells. */
export interface ChatStatus {
  readonly connection: "new" | "on" | "lost";
  readonly isTurn: boolean;
  readonly isCancelling: boolean;
  /** What the server says that the agent does. */
  readonly activity: { readonly state: string; readonly detail: string };
  /** What runs here. */
  readonly running: readonly string[];
  readonly held: readonly string[];
}

export class ChatCore {
  readonly #options: ChatCoreOptions;
  readonly #text: AnswerText;
  readonly #calls: CallBoard;
  #effects: Effect[] = [];
  #connection: ChatStatus["connection"] = "new";
  #isTurn = false;
  #isCancelling = false;
  /** Whether a command of the server's runs. */
  #isCommand = false;
  /** Whether the last thing that was asked for failed. */
  #hasFailed = false;
  /** Whether the next Ctrl-C leaves. */
  #isWarned = false;
  #activity: ChatStatus["activity"] = NO_ACTIVITY;
  #held: string[] = [];
  #mode: string | undefined;
  #rules: readonly PermissionRule[] = [];
  readonly #usage = new UsageCount();

  constructor(options: ChatCoreOptions) {
    this.#options = options;
    this.#text = new AnswerText({ isRaw: options.isPiped });
    this.#calls = new CallBoard({ ...options, emit: (...effects) => void this.#effects.push(...effects) });
    this.#mode = options.mode;
  }

  /** The mode of the next turn; undefined for the server's. */
  get mode(): string | undefined {
    return this.#mode;
  }

  get question(): Question | undefined {
    return this.#calls.question;
  }

  /** Whether keys answer the question now. */
  get isQuestionArmed(): boolean {
    return this.#calls.isArmed;
  }

  get unfinished(): Unfinished | undefined {
    return this.#text.unfinished;
  }

  /** Whether a message would be sent at once. */
  get isIdle(): boolean {
    return this.#connection !== "new" && !this.#isTurn && !this.#isCommand && this.#held.length === 0;
  }

  get status(): ChatStatus {
    const { running } = this.#calls;
    return {
      connection: this.#connection,
      isTurn: this.#isTurn,
      isCancelling: this.#isCancelling,
      activity: this.#activity,
      running,
      held: this.#held,
    };
  }

  /** Whether the last message was refused, or its turn failed. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  get hasEffects(): boolean {
    return this.#effects.length > 0;
  }

  /** What is to be done since this was asked last. */
  takeEffects(): readonly Effect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** Something came over the session. */
  onEvent(event: AgentSessionEvent): void {
    switch (event.kind) {
      case "started":
        this.#rules = event.started.permissions;
        this.#connection = "on";
        return this.#takeNext();
      case "connection":
        return this.#connectionChanged(event.state);
      case "text":
      case "thinking":
        this.#isTurn = true;
        this.#calls.wentOn();
        return this.#printAll(event.kind === "text" ? this.#text.addText(event.delta.content) : this.#text.addThought(event.delta.content));
      case "retracted":
        return this.#printAll(this.#text.retract(event.chars));
      case "tool-request": {
        const { toolCallId, toolName, parameters, timeoutMs } = event.request;
        this.#isTurn = true;
        this.#printAll(this.#text.end());
        return this.#calls.requested(toolCallId, toolName, parameters ?? {}, timeoutMs);
      }
      case "question":
        this.#isTurn = true;
        this.#printAll(this.#text.end());
        return this.#do({ kind: "look-up", callId: event.callId });
      case "turn-complete":
        return this.#turnOver(event.turn);
      case "compacted": {
        const { tokensBefore, tokensAfter } = event.compacted;
        this.#printAll(this.#text.end());
        return this.note(`older parts of the conversation are sent shorter from here on: ${tokensBefore} tokens are ${tokensAfter} now`);
      }
      case "error":
        return this.#failed(event.error.code, event.error.message);
      case "refused":
        return this.onNotSent();
      case "activity":
        this.#activity = event.activity;
        return;
      case "cursor":
      case "keepalive":
      case "pong":
      case "presence":
    }
  }

  /** A line was finished at the prompt. */
  onLine(line: string): void {
    this.#isWarned = false;
    const command = commandIn(line);
    if (this.isIdle || !this.#waits(command)) return this.#take(line, command);
    if (this.#held.length >= HELD_MAX) return this.note(`${HELD_MAX} messages wait already; this one was not taken`);
    this.#held.push(line);
  }

  /** A key while a question is asked; undefined for one that is no letter, and for what was pasted. */
  onAnswerKey(text: string | undefined): void {
    this.#calls.key(text);
  }

  /** Ctrl-C, with nothing in the line. */
  onInterrupt(): void {
    if (this.#isTurn && !this.#isCancelling) {
      this.#isCancelling = true;
      this.#calls.dropQuestions();
      return this.#do({ kind: "stop-tools" }, { kind: "cancel-turn" });
    }
    if (this.#isTurn || this.#isWarned) return this.#do({ kind: "leave" });
    this.#isWarned = true;
    this.note("Ctrl-C once more leaves");
  }

  onQuit(): void {
    this.#do({ kind: "leave" });
  }

  onRedraw(): void {
    this.#do({ kind: "redraw" });
  }

  onSuspend(): void {
    this.#do({ kind: "suspend" });
  }

  /** No key came at the question for as long as was asked for: it can have been read, or the key before it came alone. */
  onQuiet(callId: string): void {
    this.#calls.quiet(callId);
  }

  /** Which call the server asks about, and what it would do. */
  onLookedUp(callId: string, tool: string, seen: SeenCall): void {
    if (this.#isTurn && !this.#isCancelling) this.#calls.lookedUp(callId, tool, seen);
  }

  /** A call of the server's was looked at. */
  onPrepared(callId: string, seen: SeenCall, isAllowed: boolean): void {
    if (!this.#isCancelling) this.#calls.prepared(callId, seen, isAllowed);
  }

  /** The message began no turn. */
  onNotSent(): void {
    this.#over();
  }

  /** A call is over. */
  onOutcome(callId: string, summary: string, outcome: ToolOutcome): void {
    this.#calls.over(callId, summary, outcome);
  }

  /** A command of the server's is done. */
  onCommandDone(result: { readonly lines: readonly string[] } | { readonly problem: string }): void {
    this.#isCommand = false;
    if ("problem" in result) this.problem(result.problem);
    else if (result.lines.length > 0) this.#print({ kind: "lines", lines: result.lines });
    this.#takeNext();
  }

  /** The chat goes on in another session. */
  onSwitched(): void {
    this.#connection = "new";
    this.#isTurn = false;
    this.#calls.reset();
  }

  /** The session that is gone on with has a turn that is not over. */
  onOpenTurn(): void {
    this.#isTurn = true;
  }

  /** The person allowed these tools in this session before. */
  allowAlways(tools: Iterable<string>): void {
    this.#calls.allowAlways(tools);
  }

  /** A remark. */
  note(text: string): void {
    this.#print({ kind: "note", text });
  }

  /** Something went wrong. */
  problem(text: string): void {
    this.#print({ kind: "problem", text });
  }

  /** Takes back what is held: it goes into the line, to be changed or sent. */
  takeHeld(): readonly string[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }

  /** While the server is gone the status says so; that it was is printed once it is back. */
  #connectionChanged(state: "lost" | "restored"): void {
    if (state === "restored" && this.#connection === "lost") this.note("the connection was lost and is there again");
    this.#connection = state === "lost" ? "lost" : "on";
  }

  #turnOver({ usage, stopReason }: TurnComplete): void {
    this.#printAll(this.#text.end());
    this.#usage.add(usage);
    // What went wrong was said before.
    if (stopReason === "cancelled") this.note("cancelled");
    else if (stopReason !== "end_turn" && stopReason !== "error") this.note(`the turn ended: ${stopReason.replaceAll("_", " ")}`);
    this.#hasFailed = stopReason === "error";
    this.#over();
  }

  /** No turn runs any more. */
  #over(): void {
    this.#do({ kind: "stop-tools" }, { kind: "end-turn" });
    this.#calls.clear();
    this.#isTurn = false;
    this.#activity = NO_ACTIVITY;
    this.#isCancelling = false;
    this.#takeNext();
  }

  #failed(code: string, message: string): void {
    this.#printAll(this.#text.end());
    // It ends the chat, which says so itself.
    if (code === "taken_over") return;
    if (code !== "unknown_tool_call" && code !== "no_active_turn") {
      this.#hasFailed = true;
      return this.problem(`${message} (${code})`);
    }
    // What was cancelled here while it ran is answered all the same, and nobody waits for that.
    if (this.#isTurn && !this.#isCancelling) this.note("a result came too late: the agent went on without it");
  }

  /** Whether a line has to wait: for the end of the turn, of another command, or for the session to stand. */
  #waits(command: Command | undefined): boolean {
    if (command === undefined) return true;
    if (command.kind !== "server") return false;
    return command.command.name !== "tree" || this.#isCommand || this.#connection === "new";
  }

  #take(line: string, command: Command | undefined): void {
    if (command === undefined) return this.#say(messageIn(line));
    this.#print({ kind: "typed", text: line.trim() });
    this.#command(command);
  }

  #say(text: string): void {
    this.#isTurn = true;
    this.#hasFailed = false;
    this.#print({ kind: "said", text });
    this.#do({ kind: "say", text });
  }

  #takeNext(): void {
    if (this.#connection === "new" || this.#isTurn || this.#isCommand) return;
    const next = this.#held.shift();
    if (next !== undefined) this.#take(next, commandIn(next));
  }

  #command(command: Command): void {
    switch (command.kind) {
      case "help":
        return this.#print({ kind: "lines", lines: helpLines() });
      case "tools":
        return this.#print({ kind: "lines", lines: toolLines(this.#options.tools, this.#rules, (tool) => this.#calls.isAlways(tool)) });
      case "usage":
        return this.#print({ kind: "lines", lines: this.#usage.lines });
      case "show": {
        const outcome = this.#calls.outcome(command.back);
        return outcome === undefined ? this.note("there is no such result") : this.#print({ kind: "outcome", outcome, isWhole: true });
      }
      case "mode":
        return this.#setMode(command.mode);
      case "server":
        this.#isCommand = true;
        return this.#do({ kind: "command", command: command.command });
      case "wrong":
        return this.problem(command.message);
      case "quit":
        return this.#do({ kind: "leave" });
    }
  }

  #setMode(mode: string | undefined): void {
    if (mode === undefined) return this.#print({ kind: "lines", lines: [`mode: ${this.#mode ?? "react"}`] });
    if (!MODES.includes(mode)) return this.problem(`/mode: must be ${MODES.join(" or ")}`);
    this.#mode = mode;
    this.note(`the next turns run in the mode ${mode}`);
  }

  #printAll(printed: readonly Printed[]): void {
    for (const one of printed) this.#print(one);
  }

  #print(printed: Printed): void {
    if (printed.kind === "said" || printed.kind === "answer" || printed.kind === "thought") this.#calls.interrupted();
    this.#do({ kind: "print", printed });
  }

  #do(...effects: readonly Effect[]): void {
    this.#effects.push(...effects);
  }
}
