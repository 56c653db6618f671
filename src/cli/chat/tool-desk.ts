/**
 * Looks at the server's calls and runs them, by the ledger.
 *
 * Invariants:
 * - What changes something begins once: that it began is on disk before it does, and what became of it before that is sent.
 * - A call that a killed chat left running is answered with what can be said of it. It is not run again.
 */

import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock } from "../../base/index.ts";
import type { AgentToolResult } from "../../client/index.ts";
import type { Ledger } from "./ledger.ts";
import type { SeenCall } from "./call-board.ts";
import { summaryOf } from "./past-turns.ts";
import { localTool, recovered, type PreparedCall, type ToolOutcome, type ToolWorld } from "./tools/index.ts";

/** A call of the server's. */
export interface RequestedCall {
  readonly callId: string;
  /** The message whose turn it belongs to. */
  readonly turn: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly timeoutMs: number;
}

/** What a look at a call found. */
export type Look =
  | { readonly kind: "prepared"; readonly seen: SeenCall; readonly isAllowed: boolean }
  /** It is answered already. */
  | { readonly kind: "answered"; readonly summary: string; readonly outcome: ToolOutcome };

interface OpenCall {
  readonly requested: RequestedCall;
  readonly prepared: PreparedCall;
}

/** What a call gets that would change something and of which nothing could be kept. */
const NOT_KEPT: ToolOutcome = {
  success: false,
  result:
    "it was not run: the client cannot write down on its disk that it begins, and runs nothing that it would not know of after a crash",
};

export class ToolDesk implements AsyncDisposable {
  readonly #world: ToolWorld;
  readonly #ledger: () => Ledger;
  readonly #answer: (callId: string, result: AgentToolResult) => void;
  readonly #open = new Map<string, OpenCall>();
  readonly #running = new Set<Promise<ToolOutcome>>();
  #stopping = new AbortController();

  constructor(world: ToolWorld, ledger: () => Ledger, answer: (callId: string, result: AgentToolResult) => void) {
    this.#world = world;
    this.#ledger = ledger;
    this.#answer = answer;
  }

  /** What a call of one of the chat's tools would do, for the question about it; undefined for another's tool. */
  async preview(tool: string, args: JsonObject): Promise<SeenCall | undefined> {
    const prepared = await localTool(tool)?.prepare(args, this.#world);
    if (prepared === undefined) return undefined;
    return "refused" in prepared ? { summary: `${tool}: ${prepared.refused}`, details: prepared.refused, consent: "ask" } : prepared;
  }

  /** Looks at a call; it is answered here where no person is needed and nothing runs. */
  async look(requested: RequestedCall): Promise<Look> {
    const { callId, turn, tool, args } = requested;
    const known = this.#ledger().callOf(turn, callId);
    if (known !== undefined) {
      const outcome = known.kind === "ended" ? known.outcome : await recovered(known.tool, known.mark, this.#world.workspace);
      return this.#answered(requested, `${summaryOf(tool, args)}, before the chat was started anew`, outcome);
    }
    const prepared = (await localTool(tool)?.prepare(args, this.#world)) ?? { refused: `there is no tool ${tool} here` };
    if ("refused" in prepared) return this.#answered(requested, summaryOf(tool, args), { success: false, result: prepared.refused });
    this.#open.set(callId, { requested, prepared });
    return { kind: "prepared", seen: prepared, isAllowed: this.#ledger().isAllowed(turn, callId) };
  }

  /** Runs a call that was looked at, and answers it. */
  async run(callId: string): Promise<{ readonly summary: string; readonly outcome: ToolOutcome } | undefined> {
    const open = this.#open.get(callId);
    if (open === undefined) return undefined;
    this.#open.delete(callId);
    const { requested, prepared } = open;
    const { turn, tool, timeoutMs } = requested;
    const isChange = localTool(tool)?.onlyLooks !== true;
    const { clock } = this.#world;
    const time = new AbortController();
    const timer = timeoutMs === 0 ? undefined : clock.after(timeoutMs, () => time.abort());
    const startMs = clock.monotonicMs();
    if (isChange && !this.#keeps((ledger) => ledger.begin(turn, callId, tool, prepared.mark))) {
      timer?.cancel();
      this.#send(callId, NOT_KEPT);
      return { summary: prepared.summary, outcome: NOT_KEPT };
    }
    const running = prepared.run({ signal: AbortSignal.any([this.#stopping.signal, time.signal]) });
    this.#running.add(running);
    const outcome = await running;
    this.#running.delete(running);
    timer?.cancel();
    // What cannot be kept is sent all the same: to who asks again after a crash it is of unknown outcome, and is not run again.
    if (isChange) this.#keeps((ledger) => ledger.end(turn, callId, outcome));
    this.#send(callId, outcome, elapsedMs(clock, startMs));
    return { summary: prepared.summary, outcome };
  }

  /** Answers a call that is not run. */
  refuse(callId: string, result: string): { readonly summary: string; readonly outcome: ToolOutcome } {
    const summary = this.#open.get(callId)?.prepared.summary ?? "";
    this.#open.delete(callId);
    const outcome: ToolOutcome = { success: false, result };
    this.#send(callId, outcome);
    return { summary, outcome };
  }

  /** Ends what runs. */
  stop(): void {
    this.#stopping.abort();
    this.#stopping = new AbortController();
    this.#open.clear();
  }

  /** Ends what runs, and resolves when it has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await Promise.allSettled(this.#running);
  }

  /** Whether the ledger took it: its disk may be full. */
  #keeps(write: (ledger: Ledger) => void): boolean {
    try {
      write(this.#ledger());
      return true;
    } catch {
      return false;
    }
  }

  #answered({ callId, turn, tool }: RequestedCall, summary: string, outcome: ToolOutcome): Look {
    if (localTool(tool)?.onlyLooks === false) this.#keeps((ledger) => ledger.end(turn, callId, outcome));
    this.#send(callId, outcome);
    return { kind: "answered", summary, outcome };
  }

  #send(callId: string, { success, result, exitCode, truncated }: ToolOutcome, durationMs?: bigint): void {
    this.#answer(callId, {
      success,
      result: result.toWellFormed(),
      truncated: truncated === true,
      ...(exitCode === undefined ? {} : { exitCode }),
      ...(durationMs === undefined ? {} : { durationMs }),
    });
  }
}

function elapsedMs(clock: Clock, startMs: number): bigint {
  return BigInt(Math.max(0, Math.round(clock.monotonicMs() - startMs)));
}
