/** Signals of a turn and of what its harness asks. */

/** One that fires when either does. Joining signals is dear, and most harnesses pass on the one that they were given. */
export function eitherSignal(own: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other === undefined || other === own ? own : AbortSignal.any([own, other]);
}
