/** The runtimes of this host: from a harness's configuration to the backend that it runs on. Only here are they named. */

import { HoldfastError } from "../base/index.ts";
import type { Runtime } from "../spi/index.ts";
import type { HarnessConfig } from "./harness-config.ts";

/** The runtime of a harness. Throws FAILED_PRECONDITION for one that this host has not. */
export function runtimeFor(config: HarnessConfig): Runtime {
  switch (config.runtime) {
    case "process":
    case "remote":
    case "quickjs":
    case "gvisor":
      throw new HoldfastError("failed_precondition", `runtime ${config.runtime} is not built into this host`, { field: "runtime" });
  }
}
