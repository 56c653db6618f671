/**
 * Tools that count. Every call that reaches one is in the ledger, with the TOOL_CALL that was durable for it at that moment. How long
 * they take, and whether they fail, is the caller's script; each result names the run that it came from.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, type Seq } from "../../base/index.ts";
import { ToolDefinitionSchema, ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import type { HostTool, ToolCall, ToolExecutor, ToolResult, ToolRun } from "../../spi/index.ts";
import type { JournalMonitor } from "./journal-monitor.ts";
import type { Ledger, RealToolRun } from "./ledger.ts";
import { currentRun } from "./observed-harness.ts";
import { toolCallSeqs } from "./tool-evidence.ts";

/** What a tool does once it has begun: it takes its time, and may throw. */
export type ToolScript = (signal: AbortSignal) => Promise<void>;

/** What counted tools need. */
export interface CountedToolsOptions {
  readonly ledger: Ledger;
  readonly monitor: JournalMonitor;
  readonly script: ToolScript;
  /** Resolves when the host may go on: never, once it is dead. */
  readonly alive: () => Promise<void>;
}

/** `safe` is idempotent, `once` is not. */
const TOOLS: readonly HostTool[] = [
  { definition: create(ToolDefinitionSchema, { name: "safe" }), idempotent: true },
  { definition: create(ToolDefinitionSchema, { name: "once" }), idempotent: false },
];

/** The tools of one host. */
export class CountedTools implements ToolExecutor {
  readonly #options: CountedToolsOptions;

  constructor(options: CountedToolsOptions) {
    this.#options = options;
  }

  list(): readonly HostTool[] {
    return TOOLS;
  }

  find(name: string): HostTool | undefined {
    return TOOLS.find(({ definition }) => definition.name === name);
  }

  check(): undefined {
    return undefined;
  }

  async execute(call: ToolCall, { session, signal }: ToolRun): Promise<ToolResult> {
    const { ledger, monitor, alive, script } = this.#options;
    const run = currentRun();
    if (run === undefined) throw new HoldfastError("internal", "a tool was run outside of any run");
    const durableSeq = monitor.durableSeq(session);
    await alive();
    await monitor.refresh(session);
    const own = toolCallSeqs(monitor.of(session), call.id, call.idempotencyKey);
    const callSeq: Seq | undefined = own.findLast((seq) => seq <= durableSeq);
    const nonce = ledger.toolRuns.length;
    const idempotent = this.find(call.tool)?.idempotent === true;
    const real: RealToolRun = {
      ...run,
      session,
      tool: call.tool,
      toolCallId: call.id,
      key: call.idempotencyKey,
      idempotent,
      callSeq,
      nonce,
    };
    ledger.toolRuns.push(real);
    await script(signal);
    await alive();
    return create(ToolResultSchema, { output: { nonce } });
  }
}
