/**
 * The calls that a person is asked about, one after the other. Pure.
 *
 * Invariants:
 * - A person is asked about a call once, whoever wants to know: the server's rules or the chat itself.
 * - A key counts only while its question can have been read, and only alone: a word that is typed or pasted at a question answers nothing.
 */

import type { Consent } from "./tools/index.ts";

/** A question. */
export interface Question {
  readonly callId: string;
  /** Who asks: the server's rules, or the chat before it runs something here. */
  readonly by: "server" | "chat";
  readonly tool: string;
  readonly summary: string;
  readonly details: string;
  /** Whether the details are a diff, whose first lines are shown with the question: no change is allowed unseen. */
  readonly hasDiff?: boolean | undefined;
  /** Whether the tool may be allowed for the whole session. */
  readonly canAlways: boolean;
}

/** What a person may answer. */
export type Answer = "yes" | "no" | "always" | "details";

/** How long no key may come until one answers: what was typed before the question could be read is no answer. */
export const ARM_MS = 300;
/** How long no other key may come after one that answers; before it, ARM_MS holds. */
export const ALONE_MS = 150;

const ANSWERS: Readonly<Record<string, Answer>> = { y: "yes", n: "no", a: "always", d: "details" };

export class Questions {
  readonly #open: Question[] = [];
  readonly #allowed = new Set<string>();
  readonly #always: Set<string>;
  /** Whether the first question's keys count. */
  #isArmed = false;
  /** The answer of the last key, which counts once it is known to have come alone. */
  #pending: Answer | undefined;

  constructor(always: Iterable<string> = []) {
    this.#always = new Set(always);
  }

  /** The question that is asked now. */
  get current(): Question | undefined {
    return this.#open[0];
  }

  get isArmed(): boolean {
    return this.#isArmed;
  }

  /** Whether a call may run without a question: it was allowed, or its tool was for the session. */
  mayRun(callId: string, tool: string, consent: Consent): boolean {
    if (consent === "none" || this.#allowed.has(callId)) return true;
    return consent === "ask" && this.#always.has(tool);
  }

  isAlways(tool: string): boolean {
    return this.#always.has(tool);
  }

  /** Asks after those that wait. True when it is the one that is asked now. */
  ask(question: Question): boolean {
    if (this.#open.some(({ callId }) => callId === question.callId)) return false;
    this.#open.push(question);
    return this.#open.length === 1;
  }

  /**
   * A key came; undefined for one that is no letter, or for a paste. Returns how long no other may come before `quiet` is called; undefined
   * where nothing is asked.
   */
  key(text: string | undefined): number | undefined {
    if (this.current === undefined) return undefined;
    const answer = this.#isArmed && this.#pending === undefined ? answerOf(text, this.current) : undefined;
    this.#pending = answer;
    this.#isArmed = answer !== undefined;
    return answer === undefined ? ARM_MS : ALONE_MS;
  }

  /** No key came for as long as was asked for: the last one answers, if it was an answer; else the next one may. */
  quiet(callId: string): Answer | undefined {
    if (this.current?.callId !== callId) return undefined;
    const answer = this.#pending;
    this.#pending = undefined;
    this.#isArmed = true;
    return answer;
  }

  allow(callId: string): void {
    this.#allowed.add(callId);
  }

  allowAlways(tool: string): void {
    this.#always.add(tool);
  }

  /** Takes the question about a call back; true when it was open. */
  drop(callId: string): boolean {
    const index = this.#open.findIndex((question) => question.callId === callId);
    if (index < 0) return false;
    this.#open.splice(index, 1);
    if (index === 0) this.#disarm();
    return true;
  }

  /** Takes back what the server asked: somebody else has answered. */
  dropServers(): readonly Question[] {
    const dropped = this.#open.filter(({ by }) => by === "server");
    for (const { callId } of dropped) this.drop(callId);
    return dropped;
  }

  /** Another session: only these tools are allowed. */
  reset(always: Iterable<string>): void {
    this.clear();
    this.#always.clear();
    for (const tool of always) this.#always.add(tool);
  }

  /** The turn is over. */
  clear(): void {
    this.#open.length = 0;
    this.#allowed.clear();
    this.#disarm();
  }

  #disarm(): void {
    this.#isArmed = false;
    this.#pending = undefined;
  }
}

/** What a key answers to a question; undefined for no answer. */
function answerOf(text: string | undefined, { canAlways }: Question): Answer | undefined {
  const answer = text === undefined ? undefined : ANSWERS[text.toLowerCase()];
  return answer === "always" && !canAlways ? undefined : answer;
}
