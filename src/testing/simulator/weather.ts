/**
 * The weather of a world: how often what goes wrong. It is drawn from the seed, so that some worlds lose every tenth call and some
 * have nothing but slow disks, and it can be turned off.
 */

import type { ErrorCode } from "../../base/index.ts";
import type { Dice } from "../dice.ts";
import { GOOD_FATE, type Fate, type Fates } from "./journal-view.ts";

/** Rates, in a thousand. */
interface Climate {
  /** Writes that never arrive. */
  readonly lost: number;
  /** Writes whose answer is lost. */
  readonly unanswered: number;
  /** Calls that take long. */
  readonly slow: number;
  /** Renewals that are lost. */
  readonly renewalsLost: number;
  /** Reads that fail. */
  readonly readsLost: number;
  /** Harnesses that throw at a place where they may. */
  readonly throws: number;
}

/** What a model does with one request. */
export type ModelMood = "quick" | "streams" | "slow" | "fails" | "breaks" | "ends early" | "hangs" | "lone surrogates";

/** What a tool does with one call. */
export type ToolMood = "instant" | "quick" | "slow" | "fails" | "hangs";

/** The weather of one world. */
export class Weather implements Fates {
  /** Nothing goes wrong any more. */
  isCalm = false;
  readonly #dice: Dice;
  readonly #climate: Climate;

  constructor(dice: Dice) {
    this.#dice = dice;
    const rate = (high: number): number =>
      dice.weighted([
        [3, 0],
        [3, Math.ceil(high / 5)],
        [2, high],
      ]);
    this.#climate = {
      lost: rate(40),
      unanswered: rate(40),
      slow: rate(250),
      renewalsLost: rate(500),
      readsLost: rate(30),
      throws: rate(200),
    };
  }

  write(kind: Parameters<Fates["write"]>[0]): Fate {
    if (this.isCalm) return GOOD_FATE;
    const { lost, unanswered, renewalsLost } = this.#climate;
    const arrives = !this.#dice.chance(kind === "renew" ? renewalsLost : lost);
    const isAnswered = !this.#dice.chance(unanswered);
    // A disk that is full refuses before anything is written; every other fault leaves open what happened.
    const code: ErrorCode = !arrives && this.#dice.chance(200) ? "resource_exhausted" : "unavailable";
    return { delayMs: this.#delayMs(), arrives, isAnswered, answerDelayMs: this.#delayMs(), code };
  }

  read(): Fate {
    if (this.isCalm) return GOOD_FATE;
    const arrives = !this.#dice.chance(this.#climate.readsLost);
    return { ...GOOD_FATE, delayMs: this.#delayMs(), arrives };
  }

  /** Whether a harness that may throw does so here. */
  throws(): boolean {
    return !this.isCalm && this.#dice.chance(this.#climate.throws);
  }

  mood(): ModelMood {
    if (this.isCalm) return "quick";
    return this.#dice.weighted<ModelMood>([
      [8, "quick"],
      [5, "streams"],
      [3, "slow"],
      [1, "fails"],
      [1, "breaks"],
      [1, "ends early"],
      [1, "hangs"],
      [1, "lone surrogates"],
    ]);
  }

  toolMood(): ToolMood {
    if (this.isCalm) return "quick";
    return this.#dice.weighted<ToolMood>([
      [4, "instant"],
      [8, "quick"],
      [3, "slow"],
      [2, "fails"],
      [1, "hangs"],
    ]);
  }

  /** How long a model thinks before a chunk. */
  thinkMs(mood: ModelMood): number {
    return mood === "slow" ? this.#dice.between(500, 25_000) : this.#dice.between(1, 60);
  }

  #delayMs(): number {
    if (!this.#dice.chance(this.#climate.slow)) return 0;
    return this.#dice.weighted([
      [6, this.#dice.between(1, 40)],
      [2, this.#dice.between(100, 2_000)],
      [1, this.#dice.between(4_000, 20_000)],
    ]);
  }
}
