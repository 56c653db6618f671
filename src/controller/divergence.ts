/** Divergence: a harness that asks for something other than what is recorded (I0). */

import { HoldfastError } from "../base/errors.ts";
import type { Seq } from "../base/ids.ts";
import type { ModelRequest } from "../spi/index.ts";
import type { RecordedEffect } from "./recorded-turn.ts";

/** What a harness asked of its sink. */
export type AskedEffect =
  | { readonly kind: "model"; readonly request: ModelRequest; readonly inputHash: string }
  | { readonly kind: "output"; readonly text: string }
  | { readonly kind: "tool"; readonly tool: string; readonly id: string }
  | { readonly kind: "report"; readonly id: string }
  | { readonly kind: "usage" }
  | { readonly kind: "baseline" };

/** Where a run left its record. */
export interface Divergence {
  /** The seq of the recorded effect; of the turn's last record when the harness asked for more than there is. */
  readonly seq: Seq;
  /** What is recorded there; undefined when the harness asked for more. */
  readonly recorded: RecordedEffect | undefined;
  /** What the harness asked for; undefined when it ended before it had asked for everything. */
  readonly asked: AskedEffect | undefined;
  /** In one line, without content: what differs. */
  readonly reason: string;
}

/** Sticky: after it nothing more is served, performed or recorded, whatever the harness catches. */
export class DivergenceError extends HoldfastError {
  readonly divergence: Divergence;

  constructor(divergence: Divergence) {
    super("failed_precondition", `harness: it diverged from its record at seq ${divergence.seq}: ${divergence.reason}`, {
      details: { seq: divergence.seq },
    });
    this.divergence = divergence;
  }
}
