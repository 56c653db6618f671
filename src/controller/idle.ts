/**
 * Sessions that nobody has asked anything of for a while: first kept warm, then cold.
 *
 * Invariant: a session is idle from the end of its last turn. Whatever begins with it takes it off the watch.
 */

import { toHoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { Clock, Log, Timer } from "../base/ports.ts";

/** After how long an idle session is put to sleep; undefined for never. */
export interface IdlePolicy {
  /** Milliseconds until it is kept warm (COMPUTE_WARM). */
  readonly pauseAfterMs?: number | undefined;
  /** Milliseconds until it goes cold (COMPUTE_COLD), from the end of its last turn. */
  readonly suspendAfterMs?: number | undefined;
}

/** What watching needs of its controller. */
export interface IdleContext {
  readonly clock: Clock;
  readonly log: Log;
  readonly policy: IdlePolicy;
  readonly pause: (session: SessionUid) => Promise<unknown>;
  readonly suspend: (session: SessionUid) => Promise<unknown>;
}

/** Watches the sessions whose sandboxes live here. */
export class IdleSessions {
  readonly #context: IdleContext;
  readonly #timers = new Map<SessionUid, readonly Timer[]>();
  #stopped = false;

  constructor(context: IdleContext) {
    this.#context = context;
  }

  /** The session has nothing to do from now on. */
  began(session: SessionUid): void {
    this.ended(session);
    if (this.#stopped) return;
    const { pauseAfterMs, suspendAfterMs } = this.#context.policy;
    const timers = [
      ...this.#after(pauseAfterMs, () => this.#putToSleep(session, "pause")),
      ...this.#after(suspendAfterMs, () => this.#putToSleep(session, "suspend")),
    ];
    if (timers.length > 0) this.#timers.set(session, timers);
  }

  /** Something is asked of the session. */
  ended(session: SessionUid): void {
    for (const timer of this.#timers.get(session) ?? []) timer.cancel();
    this.#timers.delete(session);
  }

  /** Puts nobody to sleep any more. */
  stop(): void {
    this.#stopped = true;
    for (const session of this.#timers.keys()) this.ended(session);
  }

  #after(ms: number | undefined, task: () => void): readonly Timer[] {
    return ms === undefined ? [] : [this.#context.clock.after(ms, task)];
  }

  #putToSleep(session: SessionUid, how: "pause" | "suspend"): void {
    if (how === "suspend") this.#timers.delete(session);
    this.#context[how](session).catch((error: unknown) => {
      const fault = toHoldfastError(error);
      // Somebody was faster: a turn runs, or the session is gone.
      if (fault.code === "aborted" || fault.code === "not_found" || fault.code === "failed_precondition") return;
      this.#context.log.log("warn", `an idle session could not be put to sleep`, { session, how, code: fault.code });
    });
  }
}
