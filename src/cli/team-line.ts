/** What happened in a team, as a line. Pure. */

import type { TeamEvent } from "../client/index.ts";
import { clipped, plainLine } from "./plain.ts";

/** How much of a worker's result a line shows; `--json` shows all. */
const CLIP_CHARS = 160;
const WORD_CHARS = 11;

/** The line of an event: the worker, what happened, and what belongs to it. */
export function teamLine({ event }: TeamEvent): string {
  switch (event.case) {
    case "workerStarted":
      return line(event.value.workerId, "started", event.value.hostId === "" ? "" : `on ${plainLine(event.value.hostId)}`);
    case "workerPhase":
      return line(event.value.workerId, "phase", `${event.value.phase}  ${plainLine(event.value.mode)}`);
    case "workerToolCall":
      return line(event.value.workerId, "calls", plainLine(event.value.tool));
    case "workerCompleted":
      return line(event.value.workerId, "completed", clipped(event.value.result, CLIP_CHARS));
    case "workerFailed":
      return line(event.value.workerId, "failed", plainLine(event.value.reason));
    case "workerExited":
      return line(event.value.workerId, "exited", "");
    case undefined:
      return line("", "unknown", "");
  }
}

function line(worker: string, what: string, detail: string): string {
  return `${plainLine(worker)}  ${what.padEnd(WORD_CHARS)}${detail}`.trimEnd();
}
