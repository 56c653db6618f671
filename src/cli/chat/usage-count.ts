/** The tokens of a chat's turns. */

import type { TokenUsage } from "../../client/index.ts";
import { columnLines } from "../columns.ts";

interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cached: number;
}

const NONE: Usage = { input: 0, output: 0, cached: 0 };

export class UsageCount {
  #turn = NONE;
  #total = NONE;
  #turns = 0;

  /** A turn is over that took this. */
  add(usage: TokenUsage | undefined): void {
    const turn = { input: usage?.inputTokens ?? 0, output: usage?.outputTokens ?? 0, cached: usage?.cacheReadTokens ?? 0 };
    this.#turn = turn;
    this.#total = {
      input: this.#total.input + turn.input,
      output: this.#total.output + turn.output,
      cached: this.#total.cached + turn.cached,
    };
    this.#turns++;
  }

  /** What `/usage` prints. */
  get lines(): readonly string[] {
    const row = (name: string, { input, output, cached }: Usage): string[] => [name, String(input), String(output), String(cached)];
    return columnLines(
      ["tokens", "in", "out", "from cache"],
      [row("the last turn", this.#turn), row(`${this.#turns} ${this.#turns === 1 ? "turn" : "turns"} of this chat`, this.#total)],
      (text) => text,
    );
  }
}
