/**
 * A harness that plays what its config says, and the host's side of each play. Served over a line it must have the effects and the outcome
 * that it has in process: that is the conformance of the wire.
 */

import {
  ApprovalParkedError,
  defineHarness,
  HarnessFailure,
  HoldfastError,
  Mediation,
  messageText,
  textMessage,
  toolResult,
  type Harness,
  type Start,
  type TurnSink,
} from "../../harness-sdk/index.ts";

/** One play. */
type Play = (start: Start, sink: TurnSink, signal: AbortSignal) => Promise<void>;

const HOST = { tool: "look", mediation: Mediation.CONTROLLER_MEDIATED } as const;
const ASK = { tool: "pay", mediation: Mediation.REQUIRES_APPROVAL } as const;

/** The plays by name; the config of a turn is one of these names. */
export const PLAYS: Readonly<Record<string, Play>> = {
  "a model call and its usage": async (start, sink, signal) => {
    const { message, usage } = await sink.model({ messages: start.inputs, params: { temperature: "0" } }, { signal });
    await sink.usage(usage);
    await sink.output(`it said ${messageText(message)}`);
  },
  "nothing at all": async () => undefined,
  "what it was given": async (start, sink) => {
    const { executionId, sessionUid, model, resumeFromSeq, inputs, identity, history } = start;
    const principal = identity.principal?.principal ?? "nobody";
    const texts = inputs.map(messageText).join(",");
    const canMint = identity.mintToken !== undefined;
    await sink.output(`${executionId} ${sessionUid} ${model} ${resumeFromSeq} ${texts} ${principal} ${canMint} ${history.lastSeq}`);
  },
  "the whole history": async (start, sink) => sink.output(await historyText(start, {})),
  "how long the history is": async (start, sink) => {
    let seq = 0;
    for await (const page of start.history.read()) {
      if (page.firstSeq !== seq + 1) throw new Error("a page is missing");
      seq += page.events.length;
    }
    await sink.output(`${seq} of ${start.history.lastSeq} events`);
  },
  "a part of the history": async (start, sink) => sink.output(await historyText(start, { fromSeq: 3, toSeq: 5 })),
  "a history that is left early": async (start, sink) => {
    for await (const page of start.history.read()) {
      await sink.output(`first ${page.firstSeq}`);
      break;
    }
    await sink.output(await historyText(start, { fromSeq: 2, toSeq: 2 }));
  },
  "two reads of the history at once": async (start, sink) => {
    const texts = await Promise.all([historyText(start, {}), historyText(start, { fromSeq: 4 })]);
    await sink.output(texts.join("|"));
  },
  "tools one after the other": async (_start, sink) => {
    for (const which of ["a", "b"]) {
      const { output } = await sink.toolCall({ ...HOST, args: { which } });
      await sink.output(JSON.stringify(output));
    }
  },
  "tools at once": async (_start, sink) => {
    const results = await Promise.all(["a", "b", "c"].map((which) => sink.toolCall({ ...HOST, id: which, args: { which } })));
    await sink.output(results.map(({ id, output }) => `${id}:${JSON.stringify(output)}`).join(" "));
  },
  "a tool that it runs itself": async (_start, sink) => {
    await sink.report({ id: "own", output: { done: true } });
    await sink.report({ id: "own-2", isError: true, error: "it broke" });
  },
  "a call that is parked": async (_start, sink) => {
    await sink.output("before");
    await sink.toolCall({ ...ASK, id: "park" });
    await sink.output("after");
  },
  "a park that is wrapped": async (_start, sink) => {
    try {
      await sink.toolCall({ ...ASK, id: "park" });
    } catch (error) {
      throw new Error("while paying", { cause: error });
    }
  },
  "a park beside another failure": async (_start, sink) => {
    const settled = await Promise.allSettled([
      sink.toolCall({ ...ASK, id: "park" }),
      Promise.reject(new HoldfastError("aborted", "x: lost")),
    ]);
    throw new AggregateError(settled.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : [])));
  },
  "a park that is swallowed": async (_start, sink) => {
    const isParked = await sink.toolCall({ ...ASK, id: "park" }).then(
      () => false,
      (error: unknown) => error instanceof ApprovalParkedError,
    );
    await sink.output(`parked: ${isParked}`);
  },
  "an effect that is refused": async (_start, sink) => {
    await sink.toolCall({ ...HOST, id: "refuse" });
  },
  "an effect that is refused, and caught": async (_start, sink) => {
    const words = await sink.toolCall({ ...HOST, id: "refuse" }).then(
      () => "it was not refused",
      (error: unknown) => (error instanceof HoldfastError ? `${error.code} ${error.message}` : "another error"),
    );
    await sink.output(words);
  },
  "a model that is refused": async (start, sink) => void (await sink.model({ model: "none", messages: start.inputs })),
  "an output that nobody can record": async (_start, sink) => sink.output("lone \ud800 half"),
  "an output that is refused": async (_start, sink) => {
    await sink.output("refuse me");
    await sink.model({ messages: [textMessage("user", "never asked")] });
  },
  "a report of what is the host's": async (_start, sink) => {
    const result = { ...toolResult({ id: "x" }), approvalRequestSeq: 3n };
    await sink.report(result);
  },
  "a report of a call that the host runs, and caught": async (_start, sink) => {
    await sink.toolCall({ ...HOST, id: "x" });
    const words = await sink.report(toolResult({ id: "x" })).then(
      () => "it was not refused",
      (error: unknown) => (error instanceof HoldfastError ? `${error.code} ${error.message}` : "another error"),
    );
    await sink.output(words);
  },
  "a report of a call that the host refused": async (_start, sink) => {
    await sink.toolCall({ ...HOST, id: "refuse" }).catch(() => undefined);
    await sink.report(toolResult({ id: "refuse", isError: true, error: "it was not run" }));
  },
  "an end that failed": async (_start, sink) => {
    await sink.output("so far");
    throw new HarnessFailure(9, "it cannot be done");
  },
  "an error with a code": async () => {
    throw new HoldfastError("not_found", "page: there is none");
  },
  "an error without a code": async (_start, sink) => {
    await sink.output("so far");
    throw new TypeError("oops");
  },
  "many outputs": async (_start, sink) => {
    for (let index = 0; index < 300; index++) await sink.output(`line ${index}`);
  },
  "many outputs at once": async (_start, sink) => {
    await Promise.all(Array.from({ length: 300 }, (_, index) => sink.output(`line ${index}`)));
  },
  "a large output": async (_start, sink) => sink.output("x".repeat(1_000_000)),
  "a token": async (start, sink) => {
    await sink.output((await start.identity.mintToken?.(["files", "mail"])) ?? "none");
  },
  "a token that is refused": async (start, sink) => {
    await sink.output(await (start.identity.mintToken?.(["secrets"]) ?? Promise.resolve("none")));
  },
  "a wait": async (_start, _sink, signal) => {
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
  },
  "a wait that hears nothing": () => new Promise(() => undefined),
};

async function historyText(start: Start, range: { readonly fromSeq?: number; readonly toSeq?: number }): Promise<string> {
  const texts: string[] = [];
  const options = range as Parameters<Start["history"]["read"]>[0];
  let pages = 0;
  for await (const page of start.history.read(options)) {
    pages += 1;
    for (const [index, event] of page.events.entries()) {
      texts.push(`${page.firstSeq + index}:${event.kind}:${event.body.case === "message" ? messageText(event.body.value) : ""}`);
    }
  }
  return pages > 0 ? texts.join(" ") : "no history";
}

/** The harness; `play` is what it plays where a turn's config names nothing. */
export function probeHarness(): Harness {
  return defineHarness({
    id: "probe",
    version: "1",
    tools: [
      { name: "look", mediation: Mediation.CONTROLLER_MEDIATED },
      { name: "pay", mediation: Mediation.REQUIRES_APPROVAL },
    ],
    run: async (start, sink, { signal }) => {
      const name = String.fromCharCode(...start.config);
      const play = PLAYS[name];
      if (play === undefined) throw new HarnessFailure(3, `no play is called ${name}`);
      await play(start, sink, signal);
    },
  });
}
