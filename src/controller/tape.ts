/**
 * The tape: recorded effects, served in the order in which they were recorded, to a harness that asks for them again.
 *
 * Invariants:
 * - What is asked must be what is recorded (I0): a model call by its input hash, everything else by its content. The first
 *   difference is sticky.
 * - Serving performs nothing (I1).
 * - What happens at its end is said beforehand. `live`: a crash was there, and whoever plays the tape goes on live. `diverge`: the
 *   turn was complete, so asking for more is divergence. `stop`: the turn was stopped from outside, and is stopped there again.
 */

import { equals } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import type { Seq } from "../base/ids.ts";
import { SEQ_NONE } from "../base/ids.ts";
import { ToolCallSchema, ToolResultSchema, UsageSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { messageText, type ToolCall, type ToolResult, type Usage } from "../spi/index.ts";
import { type AskedEffect, DivergenceError } from "./divergence.ts";
import type { RecordedEffect } from "./recorded-turn.ts";

type EffectOf<Kind extends RecordedEffect["kind"]> = Extract<RecordedEffect, { kind: Kind }>;
type AskedOf<Kind extends AskedEffect["kind"]> = Extract<AskedEffect, { kind: Kind }>;

/** What a tape is made of. */
export interface TapeOptions {
  readonly effects: readonly RecordedEffect[];
  readonly atEnd: "live" | "diverge" | "stop";
  /** The last seq of the turn, where asking for more is reported. */
  readonly lastSeq: Seq;
  /** Called when the last recorded effect was asked for. */
  readonly onPlayed?: (() => void) | undefined;
}

/** Plays recorded effects. */
export class Tape {
  readonly #effects: readonly RecordedEffect[];
  readonly #atEnd: TapeOptions["atEnd"];
  readonly #lastSeq: Seq;
  readonly #onPlayed: () => void;
  /** Whoever waits for the tape to come to a seq, the earliest first. */
  readonly #waiting: { readonly seq: Seq; readonly resolve: () => void }[] = [];
  #next = 0;
  #divergence: DivergenceError | undefined;
  #stopped: HoldfastError | undefined;

  constructor(options: TapeOptions) {
    this.#effects = options.effects;
    this.#atEnd = options.atEnd;
    this.#lastSeq = options.lastSeq;
    this.#onPlayed = options.onPlayed ?? (() => undefined);
  }

  /** The tape of a turn that has recorded nothing yet. */
  static empty(): Tape {
    return new Tape({ effects: [], atEnd: "live", lastSeq: SEQ_NONE });
  }

  /** The first divergence, once there was one. */
  get divergence(): DivergenceError | undefined {
    return this.#divergence;
  }

  /** Whether everything recorded was asked for. */
  get played(): boolean {
    return this.#next >= this.#effects.length;
  }

  /** Whether the last recorded effect is a model call without a result: the crash, or the stop, came while it was open. */
  get endsUnanswered(): boolean {
    const last = this.#effects.at(-1);
    return last?.kind === "model" && last.result === undefined;
  }

  /** The recorded model call that answers `asked`; undefined where the tape has ended. */
  model(asked: AskedOf<"model">): EffectOf<"model"> | undefined {
    const effect = this.#take("model", asked);
    if (effect !== undefined && effect.call.inputHash !== asked.inputHash) {
      const what = effect.call.model === asked.request.model ? "the model request differs" : "another model is asked";
      throw this.#diverge(effect, asked, what);
    }
    return effect;
  }

  /** Usage that belongs to the completion just served: the next USAGE before another MODEL_CALL. */
  usageAhead(): Usage | undefined {
    for (let index = this.#next; index < this.#effects.length; index++) {
      const effect = this.#effects[index];
      if (effect?.kind === "usage") return effect.usage;
      if (effect?.kind === "model") return undefined;
    }
    return undefined;
  }

  /** Whether output is recorded here; false where the tape has ended. */
  output(text: string): boolean {
    const asked: AskedEffect = { kind: "output", text };
    const effect = this.#take("output", asked);
    if (effect !== undefined && messageText(effect.message) !== text) throw this.#diverge(effect, asked, "the text differs");
    return effect !== undefined;
  }

  /** The recorded tool call that answers this one; undefined where the tape has ended. */
  tool(call: ToolCall): EffectOf<"tool"> | undefined {
    const asked: AskedEffect = { kind: "tool", tool: call.tool, id: call.id };
    const effect = this.#take("tool", asked);
    if (effect !== undefined && !equals(ToolCallSchema, effect.call, call)) throw this.#diverge(effect, asked, "the tool call differs");
    return effect;
  }

  /** Whether this very call is what is recorded next, so that it is taken as it is and not looked at again. */
  expectsTool(call: ToolCall): boolean {
    const effect = this.#effects[this.#next];
    return effect?.kind === "tool" && equals(ToolCallSchema, effect.call, call);
  }

  /** Recorded tool calls without a result, in order, asked for or not. */
  get openCalls(): readonly EffectOf<"tool">[] {
    return this.#effects.filter((effect) => effect.kind === "tool" && effect.result === undefined) as EffectOf<"tool">[];
  }

  /**
   * Resolves once everything that is recorded before `seq` was asked for, or nothing more will be served: results of calls that ran at
   * once are served in the order in which they came.
   */
  async reached(seq: Seq): Promise<void> {
    if (this.#isReached(seq)) return;
    await new Promise<void>((resolve) => this.#waiting.push({ seq, resolve }));
  }

  /** Whether this report is recorded here; false where the tape has ended. */
  report(result: ToolResult): boolean {
    const asked: AskedEffect = { kind: "report", id: result.id };
    const effect = this.#take("report", asked);
    if (effect !== undefined && !equals(ToolResultSchema, effect.result, result)) {
      throw this.#diverge(effect, asked, "the reported result differs");
    }
    return effect !== undefined;
  }

  /** Whether this usage is recorded here; false where the tape has ended. */
  usage(usage: Usage): boolean {
    const asked: AskedEffect = { kind: "usage" };
    const effect = this.#take("usage", asked);
    if (effect !== undefined && !equals(UsageSchema, effect.usage, usage)) throw this.#diverge(effect, asked, "the usage differs");
    return effect !== undefined;
  }

  /** Whether this baseline is recorded here; false where the tape has ended. */
  baseline(account: string): boolean {
    const asked: AskedEffect = { kind: "baseline" };
    const effect = this.#take("baseline", asked);
    if (effect !== undefined && effect.account !== account) throw this.#diverge(effect, asked, "the baseline differs");
    return effect !== undefined;
  }

  /** The harness has ended. Throws when recorded effects were not asked for. */
  finish(): void {
    const unfinished = this.unfinished();
    if (unfinished !== undefined) throw unfinished;
  }

  /** The harness has ended: the divergence of one that did not ask for everything that is recorded. */
  unfinished(): DivergenceError | undefined {
    const effect = this.#effects[this.#next];
    if (this.#divergence !== undefined || effect === undefined) return this.#divergence;
    return this.#diverge(effect, undefined, `the harness ended, but ${wordOf(effect.kind)} is recorded next`);
  }

  /** Whether the tape has come to where the recorded turn was stopped. */
  get stopped(): boolean {
    return this.#stopped !== undefined;
  }

  /** Stops the tape where its turn was stopped; the error that everything gets from there on. */
  stop(): HoldfastError {
    this.#stopped ??= new HoldfastError("cancelled", "turn: it was stopped here when it was recorded");
    this.#release();
    return this.#stopped;
  }

  /** Throws once the tape has diverged or stopped. */
  pass(): void {
    if (this.#divergence !== undefined) throw this.#divergence;
    if (this.#stopped !== undefined) throw this.#stopped;
  }

  #take<Kind extends RecordedEffect["kind"]>(kind: Kind, asked: AskedEffect): EffectOf<Kind> | undefined {
    this.pass();
    const effect = this.#effects[this.#next];
    if (effect === undefined) {
      if (this.#atEnd === "stop") throw this.stop();
      if (this.#atEnd === "live") return undefined;
      throw this.#diverge(undefined, asked, `the harness asks for ${wordOf(kind)} after the last recorded effect`);
    }
    if (!isKind(effect, kind)) {
      throw this.#diverge(effect, asked, `the harness asks for ${wordOf(kind)} where ${wordOf(effect.kind)} is recorded`);
    }
    this.#next += 1;
    this.#release();
    if (this.played) this.#onPlayed();
    return effect;
  }

  #isReached(seq: Seq): boolean {
    const effect = this.#effects[this.#next];
    return effect === undefined || effect.seq > seq || this.#divergence !== undefined || this.#stopped !== undefined;
  }

  #release(): void {
    if (this.#waiting.length === 0) return;
    this.#waiting.sort((left, right) => left.seq - right.seq);
    while (this.#waiting.length > 0 && this.#isReached(this.#waiting[0]!.seq)) this.#waiting.shift()!.resolve();
  }

  #diverge(recorded: RecordedEffect | undefined, asked: AskedEffect | undefined, reason: string): DivergenceError {
    this.#divergence ??= new DivergenceError({ seq: recorded?.seq ?? this.#lastSeq, recorded, asked, reason });
    this.#release();
    return this.#divergence;
  }
}

function isKind<Kind extends RecordedEffect["kind"]>(effect: RecordedEffect, kind: Kind): effect is EffectOf<Kind> {
  return effect.kind === kind;
}

const WORDS: Readonly<Record<RecordedEffect["kind"], string>> = {
  model: "a model call",
  output: "an output",
  tool: "a tool call",
  report: "a tool result",
  usage: "usage",
  baseline: "a baseline",
};

function wordOf(kind: RecordedEffect["kind"]): string {
  return WORDS[kind];
}
