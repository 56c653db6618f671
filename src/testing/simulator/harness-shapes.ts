/**
 * The harnesses of a simulated host: one for each way in which an agent can behave, well or badly. What one asks for depends on its
 * inputs, its history and what it was answered, and on nothing else, so every turn can be replayed. When it throws may depend on the
 * weather: a throw is no effect.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, type Clock } from "../../base/index.ts";
import { EventKind, ToolResultSchema, UsageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ToolSpecSchema } from "../../gen/agentsessions/v1/harness_pb.ts";
import {
  HarnessFailure,
  Mediation,
  messageText,
  textMessage,
  type EventSink,
  type Harness,
  type Message,
  type Start,
  type ToolCall,
  type ToolResult,
} from "../../spi/index.ts";
import { SPAWN_TOOL } from "../../service/index.ts";
import { testHarness, type HarnessRun } from "../host.ts";
import { gatedCall, toolCall } from "../tools.ts";
import type { DivergentHarnesses } from "../invariants.ts";

/** The names of the simulated harnesses. */
export const HARNESS_NAMES = [
  "one-call",
  "converser",
  "writer",
  "worker",
  "historian",
  "fragile",
  "flaky",
  "failing",
  "stubborn",
  "runaway",
  "parallel",
  "impatient",
  "sleeper",
  "hasty",
  "careless",
  "shifty",
  "inventor",
  "accountant",
  "quitter",
  "toolsmith",
  "juggler",
  "asker",
  "askers",
  "repeater",
] as const;

/** A simulated harness. `spawner` is for worlds whose hosts spawn, and is drawn by nobody. */
export type HarnessName = (typeof HARNESS_NAMES)[number] | "spawner";

/** Harnesses that do something else each time, and the records from which on a turn of theirs can be neither resumed nor replayed. */
export const DIVERGENT: DivergentHarnesses = {
  shifty: { kind: EventKind.EVENT_OUTPUT, count: 1 },
  inventor: { kind: EventKind.EVENT_TOOL_RESULT, count: 1 },
  accountant: { kind: EventKind.EVENT_USAGE, count: 1 },
  quitter: { kind: EventKind.EVENT_OUTPUT, count: 2 },
};

/** What harnesses may see of their host. */
export interface HarnessWorld {
  readonly clock: Clock;
  /** Whether a harness that may throw does so here. */
  readonly throws: () => boolean;
  /** Another number each time. */
  readonly nonce: () => number;
  /** A replay. No harness may know; `quitter` does. */
  readonly isReplay: boolean;
}

/** What the inputs of a turn ask of its harness: `c` calls, `o` outputs, `t` reported tools, `w` milliseconds of waiting. */
interface Task {
  readonly calls: number;
  readonly outputs: number;
  readonly tools: number;
  readonly waitMs: number;
}

function taskOf(start: Start): Task {
  const text = start.inputs.map(messageText).join(" ");
  const number = (letter: string, otherwise: number): number => Number(new RegExp(`\\b${letter}(\\d+)`).exec(text)?.[1] ?? otherwise);
  return { calls: number("c", 1), outputs: number("o", 1), tools: number("t", 0), waitMs: number("w", 10) };
}

interface Asked {
  readonly step: number | string;
  readonly messages: readonly Message[];
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether usage is recorded. A replayed completion is given the USAGE before the next MODEL_CALL, so a harness that asks for two
   * completions at once cannot pass theirs on.
   */
  readonly usage?: boolean | undefined;
}

/** Asks the model. A model's failure is said as output and answered with nothing, so that the turn goes on. */
async function ask(start: Start, sink: EventSink, { step, messages, signal, usage = true }: Asked): Promise<Message | undefined> {
  try {
    const response = await sink.model({ model: start.model, messages, params: { step: `${step}` } }, { signal });
    if (usage) await sink.usage(response.usage);
    return response.message;
  } catch (error) {
    await sink.output(`no answer: ${error instanceof HoldfastError ? `${error.code} ${error.message}` : "?"}`);
    return undefined;
  }
}

async function converse(start: Start, sink: EventSink, between: (step: number) => Promise<void>): Promise<void> {
  const { calls } = taskOf(start);
  const messages = [...start.inputs];
  for (let step = 0; step < calls; step++) {
    const answer = await ask(start, sink, { step, messages });
    if (answer !== undefined) messages.push(answer);
    await between(step);
  }
}

function mediated(start: Start, tool: string, id: string): ToolCall {
  return toolCall(tool, id, { idempotencyKey: `${start.executionId} ${id}`, args: { id } });
}

function gated(start: Start, tool: string, id: string): ToolCall {
  return gatedCall(tool, id, { idempotencyKey: `${start.executionId} ${id}`, args: { id } });
}

/** What a spawner's input asks for: `s:one-call` spawns a session of that harness, `s:spawner/one-call` one that does so itself. */
export function spawnsIn(text: string): readonly { readonly agent: string; readonly prompt: string }[] {
  return [...text.matchAll(/s:(\S+)/g)].map(([, path = ""]) => {
    const [agent = "", ...rest] = path.split("/");
    return { agent, prompt: rest.length === 0 ? "c1" : `s:${rest.join("/")}` };
  });
}

/** Says how a call went. */
async function said(sink: EventSink, call: Promise<ToolResult>): Promise<void> {
  const { id, isError, error } = await call;
  await sink.output(isError ? `${id}: ${error}` : `${id}: done`);
}

async function report(sink: EventSink, id: string): Promise<void> {
  await sink.report(create(ToolResultSchema, { id, output: { id, nested: [1, "x", null] } }));
}

/** The runs by harness name. */
function runsIn({ clock, throws, nonce, isReplay }: HarnessWorld): Readonly<Record<HarnessName, HarnessRun>> {
  return {
    "one-call": async (start, sink) => {
      await ask(start, sink, { step: 0, messages: start.inputs });
    },
    converser: (start, sink) => converse(start, sink, async () => undefined),
    writer: async (start, sink) => {
      for (let line = 0; line < taskOf(start).outputs + 1; line++) await sink.output(`line ${line}`);
    },
    worker: async (start, sink) => {
      const { tools, outputs } = taskOf(start);
      await converse(start, sink, async (step) => {
        for (let tool = 0; tool < tools; tool++) await report(sink, `t${step}-${tool}`);
        for (let line = 0; line < outputs; line++) await sink.output(`step ${step}, line ${line}`);
      });
    },
    historian: async (start, sink) => {
      let events = 0;
      const texts: string[] = [];
      for await (const page of start.history.read()) {
        events += page.events.length;
        for (const { body } of page.events) if (body.case === "message") texts.push(messageText(body.value));
      }
      const told = textMessage("system", `${events} events: ${texts.join("|").toWellFormed()}`);
      await ask(start, sink, { step: "history", messages: [told, ...start.inputs] });
    },
    /** Lets a model's failure pass. */
    fragile: async (start, sink) => {
      const response = await sink.model({ model: start.model, messages: start.inputs });
      await sink.usage(response.usage);
      await sink.output("whole");
    },
    flaky: (start, sink) =>
      converse(start, sink, async (step) => {
        if (throws()) throw new Error("flaky");
        await sink.output(`after ${step}`);
        if (throws()) throw new RangeError("flaky again");
      }),
    failing: async (start, sink) => {
      await converse(start, sink, async () => undefined);
      throw new HarnessFailure(9, "it cannot be done");
    },
    /** Catches everything and goes on. */
    stubborn: async (start, sink) => {
      for (let step = 0; step < 4; step++) {
        await ask(start, sink, { step, messages: start.inputs }).catch(() => undefined);
        await sink.output(`step ${step}`).catch(() => undefined);
        await sink.usage(create(UsageSchema, { model: "own", inputTokens: BigInt(step) })).catch(() => undefined);
      }
    },
    runaway: async (_, sink) => {
      for (;;) await sink.output("more and more");
    },
    parallel: async (start, sink) => {
      const effects = [
        ask(start, sink, { step: "a", messages: start.inputs, usage: false }),
        sink.output("beside it"),
        report(sink, "beside"),
        ask(start, sink, { step: "b", messages: [], usage: false }),
      ];
      for (const effect of await Promise.allSettled(effects)) if (effect.status === "rejected") throw effect.reason;
    },
    /** Cancels a model call that takes too long. */
    impatient: async (start, sink) => {
      const patience = new AbortController();
      const timer = clock.after(taskOf(start).waitMs, () => patience.abort(new HoldfastError("cancelled", "harness: it took too long")));
      await ask(start, sink, { step: "quick", messages: start.inputs, signal: patience.signal });
      timer.cancel();
      await sink.output("done");
    },
    sleeper: async (start, sink, { signal }) => {
      await converse(start, sink, () => clock.sleep(taskOf(start).waitMs * 10, { signal }));
    },
    /** Throws while its model call is on its way, and awaits it only in good weather. */
    hasty: async (start, sink) => {
      const call = ask(start, sink, { step: 0, messages: start.inputs });
      call.catch(() => undefined);
      if (throws()) throw new Error("hasty");
      await call;
    },
    /** Never asks for the same twice, catches what it gets for that, and goes on. */
    shifty: async (start, sink) => {
      const messages = [textMessage("user", `nonce ${nonce()}`)];
      await ask(start, sink, { step: 0, messages }).catch(() => undefined);
      await sink.output("as if nothing were").catch(() => undefined);
      await ask(start, sink, { step: 1, messages }).catch(() => undefined);
    },
    /** Reports another result each time. */
    inventor: async (_, sink) => {
      await sink.report(create(ToolResultSchema, { id: "invented", output: { nonce: nonce() } })).catch(() => undefined);
      await sink.output("as reported").catch(() => undefined);
    },
    /** Accounts for other costs each time. */
    accountant: async (_, sink) => {
      await sink.usage(create(UsageSchema, { model: "own", inputTokens: BigInt(nonce()) })).catch(() => undefined);
    },
    /** Does less when it is replayed. */
    quitter: async (_, sink) => {
      await sink.output("one");
      if (!isReplay) await sink.output("two");
    },
    /** Calls one tool after the other, of both kinds. */
    toolsmith: (start, sink) =>
      converse(start, sink, async (step) => {
        for (const tool of ["safe", "once"]) await said(sink, sink.toolCall(mediated(start, tool, `${tool}-${step}`)));
      }),
    /** Calls tools at once, and says of each how it went when it comes. */
    juggler: async (start, sink) => {
      const calls = ["safe", "once", "safe", "once"].map((tool, index) => mediated(start, tool, `${index}`));
      const done = await Promise.allSettled(calls.map((call) => said(sink, sink.toolCall(call))));
      for (const each of done) if (each.status === "rejected") throw each.reason;
      await ask(start, sink, { step: "after", messages: start.inputs });
    },
    asker: async (start, sink) => {
      await ask(start, sink, { step: "before", messages: start.inputs });
      await said(sink, sink.toolCall(gated(start, "once", "asked")));
      if (throws()) throw new Error("asker");
      await said(sink, sink.toolCall(gated(start, "safe", "asked again")));
    },
    /** Asks for several decisions at once, beside a call that needs none. */
    askers: async (start, sink) => {
      const calls = [gated(start, "once", "a"), mediated(start, "safe", "b"), gated(start, "safe", "c"), gated(start, "once", "d")];
      const done = await Promise.allSettled(calls.map((call) => sink.toolCall(call)));
      const failed = done.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
      if (failed.length > 0) throw new AggregateError(failed);
      await sink.output("all decided");
    },
    /** Acts under the same keys in every turn: the effects happen once. */
    repeater: async (_, sink) => {
      for (const tool of ["safe", "once"]) {
        await said(sink, sink.toolCall(toolCall(tool, `first ${tool}`, { idempotencyKey: `the ${tool} one` })));
        await said(sink, sink.toolCall(toolCall(tool, `second ${tool}`, { idempotencyKey: `the ${tool} one` })));
      }
    },
    /** Spawns what its input asks for, all at once, between two calls of its own. */
    spawner: async (start, sink) => {
      await ask(start, sink, { step: "before", messages: start.inputs });
      const spawns = spawnsIn(start.inputs.map(messageText).join(" "));
      const calls = spawns.map(({ agent, prompt }, index) =>
        sink.toolCall(toolCall(SPAWN_TOOL, `spawn-${index}`, { idempotencyKey: `${start.executionId} ${index}`, args: { agent, prompt } })),
      );
      const results = await Promise.all(calls);
      const texts = results.flatMap(({ content }) => content.map(({ part }) => (part.case === "text" ? part.value.text : "")));
      await ask(start, sink, { step: "after", messages: [...start.inputs, textMessage("user", texts.join("|"))] });
    },
    /** Ends before its model call does. */
    careless: async (start, sink) => {
      await sink.output("bye");
      ask(start, sink, { step: 0, messages: start.inputs }).catch(() => undefined);
    },
  };
}

/** The harnesses of a host. `worker` and `parallel` run tools of their own, so nothing is served to them early. */
export function simulatedHarnesses(world: HarnessWorld, version: string): Readonly<Record<string, Harness>> {
  const own = create(ToolSpecSchema, { mediation: Mediation.IN_HARNESS_REPORTED });
  return Object.fromEntries(
    Object.entries(runsIn(world)).map(([name, run]) => {
      const tools = ["worker", "parallel", "inventor"].includes(name) ? [own] : [];
      return [name, testHarness(run, { id: name, version, tools })];
    }),
  );
}
