/** A log of JSON lines: one object a line with `time`, `level`, `message` and the fields of the call. */

import type { Clock, Log, LogFields } from "../base/ports.ts";

/** The levels, least severe first. */
export type LogLevel = Parameters<Log["log"]>[0];

const SEVERITY: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Options of a log. */
export interface JsonLogOptions {
  readonly clock: Clock;
  /** Lines below this level are left out. Default `info`. */
  readonly level?: LogLevel | undefined;
  /** Takes each line, its line feed included. Default: the process's standard error. */
  readonly write?: ((line: string) => void) | undefined;
}

/** A log that writes JSON lines. A field cannot hide `time`, `level` or `message`. Logging never throws. */
export function createJsonLog({ clock, level = "info", write = writeToStderr }: JsonLogOptions): Log {
  const threshold = SEVERITY[level];
  return {
    log: (at, message, fields) => {
      if (SEVERITY[at] < threshold) return;
      try {
        write(`${JSON.stringify(lineOf(clock.nowMs(), at, message, fields))}\n`);
      } catch {
        // There is nowhere left to say that the log itself fails; what the host does must not depend on it.
      }
    },
  };
}

function lineOf(nowMs: number, level: LogLevel, message: string, fields: LogFields | undefined): LogFields {
  const head = { time: new Date(nowMs).toISOString(), level, message };
  return { ...head, ...fields, ...head };
}

function writeToStderr(line: string): void {
  process.stderr.write(line);
}
