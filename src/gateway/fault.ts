/** What a front door logs of an error that it answers with `internal`: enough to find the place, nothing of the content. */

import { toHoldfastError, type HoldfastError, type Log } from "../base/index.ts";

/** `error` as one of the closed set. What is the server's own fault is logged; what is the caller's is not. */
export function reported(error: unknown, call: string, log: Log): HoldfastError {
  const fault = toHoldfastError(error);
  if (fault.code === "internal" || fault.code === "data_loss") {
    log.log("error", "a call failed", { call, code: fault.code, ...fault.details, ...originOf(fault.cause ?? error) });
  }
  return fault;
}

/** An error's name and the frames of its stack; its message may hold payloads. */
function originOf(error: unknown): { readonly error: string; readonly at?: string | undefined } {
  if (!(error instanceof Error)) return { error: typeof error };
  // The stack begins with the message, which may itself have lines that look like frames.
  const { stack = "", message } = error;
  const messageAt = stack.indexOf(message);
  const frames =
    messageAt < 0
      ? []
      : stack
          .slice(messageAt + message.length)
          .split("\n")
          .filter((line) => line.startsWith("    at "));
  return {
    error: error.name,
    at: frames
      .slice(0, 4)
      .map((frame) => frame.trim())
      .join(" | "),
  };
}
