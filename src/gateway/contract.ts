/** What every front door (gRPC, REST) is given by the composition root, so that all of them answer alike. */

import type { Caller } from "../spi/index.ts";

/**
 * Who makes a call. `authorization` is the value of that header or metadata key, undefined when it is absent. Throws
 * UNAUTHENTICATED when credentials are needed and these are absent or wrong.
 */
export type Authenticate = (authorization: string | undefined) => Caller;

/** Whether this process takes work. */
export type ServingState = "starting" | "serving" | "draining";

/** The health of this process. */
export interface Health {
  readonly state: ServingState;
  /** Calls `listener` after every change of the state; the returned function ends that. */
  watch(listener: (state: ServingState) => void): () => void;
  /** Resolves when work would succeed now: serving, and the store answers. Rejects with UNAVAILABLE otherwise. */
  ready(options?: { readonly signal?: AbortSignal | undefined }): Promise<void>;
  /**
   * Fires when open streams must end: after the grace for running turns, before the listeners close. Its reason is the
   * HoldfastError (UNAVAILABLE) that callers are told.
   */
  readonly closing: AbortSignal;
}
