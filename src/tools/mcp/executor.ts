/** The tools of several servers as one executor. */

import { HoldfastError, invalidArgument } from "../../base/index.ts";
import type { HostTool, ToolCall, ToolExecutor, ToolResult, ToolRun } from "../../spi/index.ts";
import type { McpTool } from "./listed-tools.ts";
import type { McpToolsOptions } from "./options.ts";
import { McpServer } from "./server.ts";
import { isServerName } from "./tool-name.ts";

/** Starts the servers; see `openMcpTools`. */
export function startMcpTools(options: McpToolsOptions): McpExecutor {
  for (const name of Object.keys(options.servers)) {
    if (isServerName(name)) continue;
    throw invalidArgument(
      `tools.servers.${name.toWellFormed().slice(0, 64)}`,
      "must have a name of 1 to 32 letters, digits, - and single _",
    );
  }
  return new McpExecutor(options);
}

interface OwnedTool {
  readonly server: McpServer;
  readonly tool: McpTool;
}

export class McpExecutor implements ToolExecutor, AsyncDisposable {
  readonly #servers: readonly McpServer[];
  readonly #log: McpToolsOptions["log"];
  /** All tools by name, the servers in their order; undefined while they have to be gathered anew. */
  #tools: ReadonlyMap<string, OwnedTool> | undefined;

  constructor({ servers, ...shared }: McpToolsOptions) {
    this.#log = shared.log;
    const onTools = (): void => void (this.#tools = undefined);
    this.#servers = Object.entries(servers).map(([name, options]) => new McpServer({ ...shared, name, options, onTools }));
  }

  /** Resolves when every server has been tried once. */
  async tried(): Promise<void> {
    await Promise.all(this.#servers.map(({ tried }) => tried));
  }

  list(): readonly HostTool[] {
    return [...this.#gathered().values()].map(({ tool }) => tool.host);
  }

  find(name: string): HostTool | undefined {
    return this.#gathered().get(name)?.tool.host;
  }

  check(call: ToolCall): string | undefined {
    return this.#gathered()
      .get(call.tool)
      ?.tool.check(call.args ?? {});
  }

  async execute(call: ToolCall, run: ToolRun): Promise<ToolResult> {
    const found = this.#gathered().get(call.tool);
    if (found === undefined) throw new HoldfastError("failed_precondition", "tool: no tool of this host has this name");
    return found.server.call(found.tool, call, run);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()));
  }

  #gathered(): ReadonlyMap<string, OwnedTool> {
    if (this.#tools !== undefined) return this.#tools;
    const tools = new Map<string, OwnedTool>();
    for (const server of this.#servers) {
      for (const [name, tool] of server.tools) {
        if (tools.has(name)) this.#log.log("warn", "mcp: two servers have a tool of one name; the first one's is offered", { tool: name });
        else tools.set(name, { server, tool });
      }
    }
    this.#tools = tools;
    return tools;
  }
}
