/**
 * The calls that a person is asked about, one after the other. Pure.
 *
 * Invariants:
 * - A person is asked about a call once, whoever wants to know: the server's rules or the chat itself.
 * - A key counts only while its question can have been read.
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
  /** Whether the tool may be allowed for the whole session. */
  readonly canAlways: boolean;
}

/** What a person may answer. */
export type Answer = "yes" | "no" | "always" | "details";

const ANSWERS: Readonly<Record<string, Answer>> = { y: "yes", n: "no", a: "always", d: "details" };

export class Questions {
  readonly #open: Question[] = [];
  readonly #allowed = new Set<string>();
  readonly #always: Set<string>;
  /** Whether the first question's keys count. */
  #isArmed = false;

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

  /** The current question can have been read. */
  arm(callId: string): void {
    if (this.current?.callId === callId) this.#isArmed = true;
  }

  /** What a key answers to the current question; undefined for no answer. */
  answerOf(text: string): Answer | undefined {
    const { current } = this;
    if (current === undefined || !this.#isArmed) return undefined;
    const answer = ANSWERS[text.toLowerCase()];
    return answer === "always" && !current.canAlways ? undefined : answer;
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
    if (index === 0) this.#isArmed = false;
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
    this.#isArmed = false;
  }
}
