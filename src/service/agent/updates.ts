/** What a client is told, at a rate, of what its agent does and how much of it to show. A client that knows without being told is told nothing. */

import type { Clock } from "../../base/ports.ts";
import type { PresencePolicy } from "../../spi/index.ts";
import type { AgentLimits } from "./limits.ts";
import { Paced } from "./paced.ts";
import { activityOf, presenceOf } from "./presence.ts";
import type { Said } from "./session-error.ts";
import type { TurnView } from "./turn-view.ts";

export interface UpdatesOptions {
  readonly clock: Clock;
  readonly limits: Pick<AgentLimits, "updatesMax" | "updatesSpanMs">;
  readonly presence: PresencePolicy;
  /** Whether the client knows that nothing goes on. */
  readonly isNew: boolean;
  readonly emit: (kind: "activity" | "presence", said: Said) => void;
}

export class Updates {
  readonly #options: UpdatesOptions;
  /** Absent until there is something to say: most streams are idle. */
  #paced: { readonly activity: Paced<Said>; readonly presence: Paced<Said> } | undefined;

  constructor(options: UpdatesOptions) {
    this.#options = options;
  }

  /** The session's turn is so now; undefined where none is open. */
  tell(turn: TurnView | undefined): void {
    const { presence, isNew } = this.#options;
    if (this.#paced === undefined && isNew && (turn === undefined || turn.isHidden)) return;
    this.#paced ??= {
      activity: this.#pacedOf("activity", activityOf(undefined)),
      presence: this.#pacedOf("presence", presenceOf(undefined, presence)),
    };
    this.#paced.activity.set(activityOf(turn));
    this.#paced.presence.set(presenceOf(turn, presence));
  }

  /** What waits is not told. */
  stop(): void {
    this.#paced?.activity.stop();
    this.#paced?.presence.stop();
  }

  #pacedOf(kind: "activity" | "presence", idle: Said): Paced<Said> {
    const { clock, limits, isNew, emit } = this.#options;
    const { updatesMax: max, updatesSpanMs: spanMs } = limits;
    const keyOf = ({ value }: Said): string => JSON.stringify(value);
    return new Paced({ clock, max, spanMs, keyOf, emit: (said) => emit(kind, said) }, isNew ? idle : undefined);
  }
}
