/** What is started for a child: the command, its limits before it, its confinement around it. Pure. */

import type { ProcessSettings } from "./options.ts";
import { confinedArguments } from "./confinement.ts";

/** A program with its arguments. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
}

/** Where the programs are that a command is made of. */
export interface Programs {
  /** The harness's own. */
  readonly command: string;
  /** Its file where that is another one than `command`. */
  readonly realCommand: string;
  /** bubblewrap; undefined where the child is not confined. */
  readonly bubblewrap: string | undefined;
}

/** The variable that tells a harness where it is served: `stdio` or `unix:///path`. */
export const LISTEN_VARIABLE = "HOLDFAST_HARNESS_LISTEN";

/** What is started; `socketFolder` is where the child listens, unless it talks over its standard streams. */
export function commandOf(settings: ProcessSettings, programs: Programs, socketFolder: string | undefined): Command {
  const { command, bubblewrap } = programs;
  if (bubblewrap === undefined) return limited({ file: command, args: settings.args }, settings);
  const around = confinedArguments(settings, programs, socketFolder);
  return limited({ file: bubblewrap, args: [...around, command, ...settings.args] }, settings);
}

/**
 * Limits are set by the shell, which is everywhere, and then the shell becomes the command. No core is ever dumped: it would hold
 * what the harness has in memory.
 */
function limited(command: Command, { memoryBytesMax, cpuSecondsMax }: ProcessSettings): Command {
  const limits = ["ulimit -c 0"];
  if (memoryBytesMax !== undefined) limits.push(`ulimit -d ${Math.max(1, Math.floor(memoryBytesMax / 1024))}`);
  // The soft limit's signal tells what happened; the hard one, which may not be below it, is for a child that ignores it.
  if (cpuSecondsMax !== undefined) limits.push(`ulimit -S -t ${cpuSecondsMax}`, `ulimit -H -t ${cpuSecondsMax + 1}`);
  if (limits.length === 1) return command;
  return { file: "/bin/sh", args: ["-c", `${limits.join(" && ")} && exec "$@"`, "sh", command.file, ...command.args] };
}
