/**
 * The tool calls of a turn as a person sees them: what is asked, what runs, what came of it. Pure: what is to be done goes out as effects.
 *
 * Invariant: nothing that changes something is run unless the person at this terminal allowed it, and they are asked once.
 */

import type { JsonObject } from "@bufbuild/protobuf";
import type { Effect } from "./printed.ts";
import { ARM_MS, Questions, type Answer, type Question } from "./questions.ts";
import type { Consent, LocalTool, ToolOutcome } from "./tools/index.ts";

/** A call that was looked at. */
export interface SeenCall {
  readonly summary: string;
  readonly details: string;
  /** Whether the details are a diff. */
  readonly hasDiff?: boolean | undefined;
  readonly consent: Consent;
}

/** What a board is made of. */
export interface CallBoardOptions {
  /** The tools on offer. */
  readonly tools: readonly LocalTool[];
  /** Tools that are allowed in any session. */
  readonly always: readonly string[];
  /** Whether nobody can be asked. */
  readonly isPiped: boolean;
  readonly emit: (...effects: readonly Effect[]) => void;
}

/** What the model is told of a call that was not allowed. */
const NOT_ALLOWED = "the person at the terminal did not allow this call";
const NOBODY_TO_ASK = "this call needs a person's permission, and there is nobody who could be asked";

/** Results that can be shown again. */
const OUTCOMES_KEPT = 20;

interface Call {
  readonly tool: string;
  readonly summary: string;
  readonly isRunning: boolean;
}

export class CallBoard {
  readonly #options: CallBoardOptions;
  readonly #emit: CallBoardOptions["emit"];
  readonly #questions: Questions;
  readonly #calls = new Map<string, Call>();
  readonly #outcomes: ToolOutcome[] = [];
  /** The call whose lines were printed last. */
  #lastCall: string | undefined;

  constructor(options: CallBoardOptions) {
    this.#options = options;
    this.#emit = options.emit;
    this.#questions = new Questions(options.always);
  }

  /** The question that is asked now. */
  get question(): Question | undefined {
    return this.#questions.current;
  }

  /** Whether keys answer it: it stood there long enough to be read. */
  get isArmed(): boolean {
    return this.#questions.isArmed;
  }

  /** What runs here, in a few words each. */
  get running(): readonly string[] {
    return [...this.#calls.values()].filter(({ isRunning }) => isRunning).map(({ summary }) => summary);
  }

  isAlways(tool: string): boolean {
    return this.#questions.isAlways(tool);
  }

  allowAlways(tools: Iterable<string>): void {
    for (const tool of tools) this.#questions.allowAlways(tool);
  }

  /** The result of the last call, or of the one so many before it. */
  outcome(back: number): ToolOutcome | undefined {
    return this.#outcomes.at(-1 - back);
  }

  /** Something else is printed: the next lines of a call need its name again. */
  interrupted(): void {
    this.#lastCall = undefined;
  }

  /** The server asks for a call. */
  requested(callId: string, tool: string, args: JsonObject, timeoutMs: number): void {
    // The server asked and somebody else answered: whether it may run here is still this person's to say.
    this.#questions.drop(callId);
    this.#calls.set(callId, { tool, summary: tool, isRunning: false });
    if (this.#options.tools.some(({ name }) => name === tool)) this.#emit({ kind: "prepare", callId, tool, args, timeoutMs });
    else this.#emit({ kind: "refuse", callId, result: `there is no tool ${tool} here` });
  }

  /** The server asks a person about a call, which would do this. */
  lookedUp(callId: string, tool: string, seen: SeenCall): void {
    if (this.#questions.mayRun(callId, tool, seen.consent === "ask-always" ? "ask-always" : "ask")) {
      this.#note(`allowed in this session: ${seen.summary}`);
      return this.#allow(callId);
    }
    this.#ask({ callId, by: "server", tool, ...seen, canAlways: seen.consent !== "ask-always" });
  }

  /** A call was looked at. `isAllowed`: the person allowed it before the chat was started anew. */
  prepared(callId: string, seen: SeenCall, isAllowed: boolean): void {
    const call = this.#calls.get(callId);
    if (call === undefined) return;
    this.#calls.set(callId, { ...call, summary: seen.summary });
    if (isAllowed || this.#questions.mayRun(callId, call.tool, seen.consent)) return this.#run(callId);
    this.#ask({ callId, by: "chat", tool: call.tool, ...seen, canAlways: seen.consent === "ask" });
  }

  /** A call is over: it ran, or it was refused, or its outcome was kept from before. */
  over(callId: string, summary: string, outcome: ToolOutcome): void {
    // What was cancelled with its turn has no result to tell.
    if (!this.#calls.delete(callId)) return;
    this.#showCall(callId, summary);
    this.#outcomes.push(outcome);
    if (this.#outcomes.length > OUTCOMES_KEPT) this.#outcomes.shift();
    this.#emit({ kind: "print", printed: { kind: "outcome", outcome, isWhole: false } });
  }

  /** The model went on, so what the server asked was answered: if not here, then elsewhere. */
  wentOn(): void {
    for (const { summary } of this.#questions.dropServers()) this.#note(`answered elsewhere: ${summary}`);
  }

  /** A key while a question is asked; undefined for one that is no letter. */
  key(text: string | undefined): void {
    const forMs = this.#questions.key(text);
    const callId = this.#questions.current?.callId;
    if (forMs !== undefined && callId !== undefined) this.#emit({ kind: "await-quiet", callId, forMs });
  }

  /** No key came at the question for as long as was asked for. */
  quiet(callId: string): void {
    const answer = this.#questions.quiet(callId);
    if (answer !== undefined) this.#answered(answer);
  }

  /** The turn is cancelled: nobody is asked any more. */
  dropQuestions(): void {
    this.#questions.clear();
  }

  /** The turn is over. */
  clear(): void {
    this.#questions.clear();
    this.#calls.clear();
    this.#lastCall = undefined;
  }

  /** Another session, for which the person has allowed nothing yet but what is allowed in any. */
  reset(): void {
    this.clear();
    this.#questions.reset(this.#options.always);
  }

  #ask(question: Question): void {
    if (this.#options.isPiped) {
      this.#note(`nobody can be asked, so it is not allowed: ${question.summary} (--allow ${question.tool} allows the tool)`);
      return this.#deny(question);
    }
    if (this.#questions.ask(question)) this.#show(question);
  }

  #show({ callId, summary, details, hasDiff }: Question): void {
    this.#showCall(callId, summary);
    if (hasDiff === true) this.#emit({ kind: "print", printed: { kind: "details", text: details, isWhole: false } });
    this.#emit({ kind: "await-quiet", callId, forMs: ARM_MS });
  }

  #answered(answer: Answer): void {
    const question = this.#questions.current;
    if (question === undefined) return;
    if (answer === "details") return this.#emit({ kind: "print", printed: { kind: "details", text: question.details, isWhole: true } });
    this.#questions.drop(question.callId);
    if (answer === "no") {
      this.#note("not allowed");
      this.#deny(question);
    } else {
      if (answer === "always") {
        this.#questions.allowAlways(question.tool);
        this.#emit({ kind: "keep-always", tool: question.tool });
      }
      this.#note(answer === "always" ? `allowed, as every ${question.tool} in this session` : "allowed");
      this.#goAhead(question);
    }
    this.#next();
  }

  #next(): void {
    const next = this.#questions.current;
    if (next === undefined) return;
    if (!next.canAlways || !this.#questions.isAlways(next.tool)) return this.#show(next);
    // What was allowed for the session meanwhile need not be asked.
    this.#questions.drop(next.callId);
    this.#goAhead(next);
    this.#next();
  }

  #goAhead({ by, callId }: Question): void {
    if (by === "server") this.#allow(callId);
    else this.#run(callId);
  }

  #allow(callId: string): void {
    this.#questions.allow(callId);
    this.#emit({ kind: "keep-allowed", callId }, { kind: "decide", callId, approved: true });
  }

  #deny({ callId, by }: Question): void {
    if (by === "server") this.#emit({ kind: "decide", callId, approved: false });
    else this.#emit({ kind: "refuse", callId, result: this.#options.isPiped ? NOBODY_TO_ASK : NOT_ALLOWED });
  }

  #run(callId: string): void {
    const call = this.#calls.get(callId);
    if (call === undefined) return;
    this.#calls.set(callId, { ...call, isRunning: true });
    this.#emit({ kind: "run", callId });
  }

  #showCall(callId: string, summary: string): void {
    if (this.#lastCall === callId) return;
    this.#emit({ kind: "print", printed: { kind: "call", summary } });
    this.#lastCall = callId;
  }

  #note(text: string): void {
    this.#emit({ kind: "print", printed: { kind: "note", text } });
  }
}
