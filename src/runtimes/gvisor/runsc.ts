/** Commands of runsc that end by themselves. */

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { HoldfastError } from "../../base/errors.ts";
import type { GvisorSettings } from "./options.ts";
import type { Programs } from "./programs.ts";
import type { Workspace } from "./workspace.ts";

const run = promisify(execFile);
const WORDS_MAX = 2_000;

/** What every call of runsc is told. */
export function runscFlags({
  settings,
  workspace,
}: {
  readonly settings: GvisorSettings;
  readonly workspace: Workspace;
}): readonly string[] {
  const flags = [`--root=${workspace.state}`, "--network=none", "--ignore-cgroups", "--log=/dev/null"];
  return settings.platform === undefined ? flags : [...flags, `--platform=${settings.platform}`];
}

/** Runs one; rejects with UNAVAILABLE and what it said. */
export async function callRunsc(
  host: { readonly settings: GvisorSettings; readonly programs: Programs; readonly workspace: Workspace },
  args: readonly string[],
): Promise<void> {
  const [verb = ""] = args;
  try {
    await run(host.programs.runsc, [...runscFlags(host), ...args], { env: {}, timeout: host.settings.commandTimeoutMs });
  } catch (cause) {
    const said = cause instanceof Error && "stderr" in cause ? String(cause.stderr).slice(0, WORDS_MAX) : "";
    throw new HoldfastError("unavailable", `sandbox: runsc ${verb} failed; the server's log has the details`, { cause, details: { said } });
  }
}
