/** Where bubblewrap is installed and the host does not let it confine anything. */

import { HoldfastError } from "../../base/errors.ts";
import type { Child } from "./child.ts";
import type { ProcessSettings } from "./options.ts";

/** Why a confined child did not start, where that was the confinement itself; undefined for every other reason. */
export async function unconfinable(child: Child | undefined, { confinement }: ProcessSettings): Promise<HoldfastError | undefined> {
  if (child === undefined || confinement === undefined) return undefined;
  const isBubblewraps = (await child.lastWords(0)).trimEnd().split("\n").at(-1)?.startsWith("bwrap: ") === true;
  if (!isBubblewraps) return undefined;
  return new HoldfastError(
    "failed_precondition",
    "runtime: bubblewrap could not confine the harness on this host; user namespaces must be allowed and the paths given for it must exist (the log has its words)",
  );
}
