/** MCP servers as tool executors, through the official SDK, which is loaded when it is used. */

import type { ToolExecutor } from "../spi/index.ts";
import type { McpToolsOptions } from "./mcp/options.ts";

export { DEFAULT_TIMEOUT_MS, type HttpReach, type McpServerOptions, type McpToolsOptions, type StdioReach } from "./mcp/options.ts";
export { isServerName } from "./mcp/tool-name.ts";

/** The tools of MCP servers. Disposing of them ends the servers that were started. */
export interface McpTools extends ToolExecutor, AsyncDisposable {}

/** How long a host waits for its servers at its start. */
const START_WAIT_MS = 15_000;

/**
 * Starts the servers and waits until each has been tried once, at most 15 seconds. A server that cannot be had takes nothing down: its
 * tools are absent, the log says why, and it is tried again. Rejects with INVALID_ARGUMENT for a server's name that cannot be one.
 */
export async function openMcpTools(options: McpToolsOptions): Promise<McpTools> {
  const { startMcpTools } = await import("./mcp/executor.ts");
  const tools = startMcpTools(options);
  const late = Promise.withResolvers<void>();
  const timer = options.clock.after(START_WAIT_MS, late.resolve);
  await Promise.race([tools.tried(), late.promise]);
  timer.cancel();
  return tools;
}
