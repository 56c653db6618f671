/** Finds the programs that a child is started with. */

import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { HoldfastError } from "../../base/errors.ts";
import type { Programs } from "./command.ts";
import type { ProcessSettings } from "./options.ts";

/** The programs of a child. Throws FAILED_PRECONDITION for one that is not on this host. */
export function findPrograms({ command, cwd, env, confinement }: ProcessSettings, hostPath = process.env["PATH"] ?? ""): Programs {
  const file = executableAt(command, env["PATH"] ?? hostPath, cwd);
  if (file === undefined) {
    throw new HoldfastError("failed_precondition", "runtime: the harness's command is no program on this host; install it, or correct it");
  }
  const bubblewrap = confinement === undefined ? undefined : executableAt("bwrap", hostPath, cwd);
  if (confinement !== undefined && bubblewrap === undefined) {
    throw new HoldfastError(
      "failed_precondition",
      "runtime: confinement needs bubblewrap, which is not installed on this host; install the package bubblewrap (the program bwrap), or turn confinement off",
    );
  }
  return { command: file, realCommand: realpathSync(file), bubblewrap };
}

/** The file of a program, looked up as a shell does; undefined where there is none. */
function executableAt(command: string, path: string, cwd: string): string | undefined {
  if (command.includes("/")) {
    const file = isAbsolute(command) ? command : resolve(cwd, command);
    return isExecutable(file) ? file : undefined;
  }
  const folders = path.split(delimiter).map((folder) => resolve(cwd, folder));
  return folders.map((folder) => join(folder, command)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
