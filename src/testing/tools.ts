/** Tools for tests: each a function, and a ledger of what was really run. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ToolCallSchema, ToolDefinitionSchema, ToolResultSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { Mediation, type HostTool, type ToolCall, type ToolExecutor, type ToolResult, type ToolRun } from "../spi/index.ts";

/** What a tool does: its output, or the whole result. */
export type TestToolRun = (call: ToolCall, run: ToolRun) => Promise<MessageInitShape<typeof ToolResultSchema>>;

/** One tool; not idempotent unless it says so. */
export interface TestTool {
  readonly idempotent?: boolean | undefined;
  /** What is wrong with arguments; default nothing. */
  readonly check?: ((call: ToolCall) => string | undefined) | undefined;
  readonly run: TestToolRun;
}

/** Runs test tools and remembers which calls it was given. */
export class TestTools implements ToolExecutor {
  /** Every call that was run, by id, in order. */
  readonly ran: string[] = [];
  readonly #tools: Readonly<Record<string, TestTool>>;

  constructor(tools: Readonly<Record<string, TestTool | TestToolRun>>) {
    this.#tools = Object.fromEntries(
      Object.entries(tools).map(([name, tool]) => [name, typeof tool === "function" ? { run: tool } : tool]),
    );
  }

  list(): readonly HostTool[] {
    return Object.entries(this.#tools).map(([name, tool]) => hostTool(name, tool));
  }

  find(name: string): HostTool | undefined {
    const tool = Object.hasOwn(this.#tools, name) ? this.#tools[name] : undefined;
    return tool && hostTool(name, tool);
  }

  check(call: ToolCall): string | undefined {
    return this.#tools[call.tool]?.check?.(call);
  }

  async execute(call: ToolCall, run: ToolRun): Promise<ToolResult> {
    this.ran.push(call.id);
    const tool = this.#tools[call.tool];
    if (tool === undefined) throw new Error("no such tool");
    return create(ToolResultSchema, await tool.run(call, run));
  }
}

function hostTool(name: string, { idempotent = false }: TestTool): HostTool {
  return { definition: create(ToolDefinitionSchema, { name }), idempotent };
}

/** A mediated call; its key is its id unless `more` says otherwise. */
export function toolCall(tool: string, id: string, more: MessageInitShape<typeof ToolCallSchema> = {}): ToolCall {
  return create(ToolCallSchema, { tool, id, mediation: Mediation.CONTROLLER_MEDIATED, idempotencyKey: id, ...more });
}

/** A call that needs a decision. */
export function gatedCall(tool: string, id: string, more: MessageInitShape<typeof ToolCallSchema> = {}): ToolCall {
  return toolCall(tool, id, { mediation: Mediation.REQUIRES_APPROVAL, ...more });
}
