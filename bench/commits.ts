/**
 * The commits of turns, taken down while turns run and made again without them: what the journal alone needs for the same work.
 *
 * Invariant: each append is made with the same events, under the same fence, and after the same earlier appends were durable as
 * when it was taken down.
 */

import type { SessionUid } from "../src/base/index.ts";
import type { AppendOutcome, AppendRequest, JournalStore, StoreCallOptions } from "../src/journal/index.ts";

/** One append of a session. */
interface Step {
  readonly request: AppendRequest;
  /** How many earlier appends of the session were answered when this one was made. */
  readonly afterAnswers: number;
}

/** The appends of sessions, in order. */
export class CommitScript {
  readonly #steps = new Map<SessionUid, Step[]>();
  readonly #answers = new Map<SessionUid, number>();

  /** The sessions that were written to. */
  sessions(): SessionUid[] {
    return [...this.#steps.keys()];
  }

  /** How many appends there are. */
  get appends(): number {
    return this.sessions().reduce((count, session) => count + this.#steps.get(session)!.length, 0);
  }

  /** `store`, with every append taken down. */
  recorded(store: JournalStore): JournalStore {
    const append = async (request: AppendRequest, options?: StoreCallOptions): Promise<AppendOutcome> => {
      const { session } = request;
      const steps = this.#steps.get(session) ?? [];
      this.#steps.set(session, steps);
      steps.push({ request, afterAnswers: this.#answers.get(session) ?? 0 });
      const outcome = await store.append(request, options);
      this.#answers.set(session, (this.#answers.get(session) ?? 0) + 1);
      return outcome;
    };
    return new Proxy(store, {
      get(target, property) {
        if (property === "append") return append;
        const value: unknown = Reflect.get(target, property, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => Reflect.apply(value, target, args);
      },
    });
  }

  /** Makes all appends of all sessions on `store`, the sessions beside each other. */
  async run(store: JournalStore): Promise<void> {
    await Promise.all([...this.#steps.values()].map((steps) => runSteps(store, steps)));
  }
}

async function runSteps(store: JournalStore, steps: readonly Step[]): Promise<void> {
  const answers: Promise<AppendOutcome>[] = [];
  let answered = 0;
  for (const { request, afterAnswers } of steps) {
    while (answered < afterAnswers) requireAppended(await answers[answered++]!);
    answers.push(store.append(request));
  }
  for (const outcome of await Promise.all(answers.slice(answered))) requireAppended(outcome);
}

function requireAppended(outcome: AppendOutcome): void {
  if (outcome.kind !== "appended") throw new Error(`an append was refused: ${outcome.kind}`);
}
