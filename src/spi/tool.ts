/** The tool SPI: how the host runs a mediated tool. */

import type { SessionUid } from "../base/ids.ts";
import type { ToolCall, ToolDefinition, ToolResult } from "./wire.ts";

/** A tool that this host can run. */
export interface HostTool {
  readonly definition: ToolDefinition;
  /** True when a second call under the same idempotency key has no further effect, so a crashed call may be driven again (I3). */
  readonly idempotent: boolean;
}

/** Runs tools for the host. */
export interface ToolExecutor {
  /** The tools on offer now, in a stable order. */
  list(options: { readonly signal: AbortSignal }): Promise<readonly HostTool[]>;
  /**
   * Runs one call whose intent is durable. A failing tool is a result with `is_error`; a rejection means that the outcome is
   * not known. The idempotency key is the call's, the session's uid makes it unique on the host.
   */
  execute(
    call: ToolCall,
    options: { readonly session: SessionUid; readonly signal: AbortSignal; readonly progress?: (detail: string) => void },
  ): Promise<ToolResult>;
}
