/**
 * What a provider seals comes back to it byte for byte (I2): in the bodies of real HTTP requests, made by the agent over a journal in a file; wherever
 * its host is killed and the turn resumed on another; in forks at every record; and where the conversation is made shorter.
 */

import { describe, expect, it } from "vitest";
import { newSessionUid, seqOf, SILENT_LOG, type SessionUid } from "../base/index.ts";
import { CONTROLLER_LIMITS } from "../controller/index.ts";
import { createAgentHarness } from "../harnesses/index.ts";
import { createAnthropicProvider, createGoogleProvider, createModelCatalog, createOpenAiProvider } from "../models/index.ts";
import type { ModelCatalog, ModelProvider } from "../spi/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { agentConfig } from "./agent-world.ts";
import { DyingStore, type Death } from "./dying-store.ts";
import { TestHost } from "./host.ts";
import { startModelServer, type ModelReply, type ModelServer, type RecordedModelRequest } from "./model-server.ts";
import { SeededRandom, seededPorts } from "./ports.ts";
import { RecordingClock } from "./recording-clock.ts";
import { asAscii, AWKWARD, MIDDLING, SEALED_WIRES, type Awkward, type SealedAnswer, type SealedWire } from "./sealed-answers.ts";
import { TemporaryFolder } from "./temporary-folder.ts";
import { resumed } from "./tool-world.ts";
import { TestTools } from "./tools.ts";

/** Far more than all that is said here. */
const ROOMY = agentConfig({ system_prompt: "Be <brief> & kind.", tools: { free: ["*"] }, context: { max_tokens: 2_000_000 } });

function providerOf({ protocol }: SealedWire, server: ModelServer): ModelProvider {
  const options = { apiKey: "k", clock: new RecordingClock(), random: new SeededRandom(1) };
  switch (protocol) {
    case "openai":
    case "responses":
      return createOpenAiProvider({ ...options, baseUrl: server.openAiBaseUrl, api: protocol === "openai" ? "chat" : "responses" });
    case "anthropic":
      return createAnthropicProvider({ ...options, baseUrl: server.anthropicBaseUrl });
    case "google":
      return createGoogleProvider({ ...options, baseUrl: server.googleBaseUrl });
  }
}

interface Played {
  readonly wire: SealedWire;
  readonly awkward: readonly Awkward[];
  /** Whether answer `n` asks for a tool. */
  readonly calls: (n: number) => boolean;
  /** The answers as a server sends them that escapes what it can. */
  readonly ascii?: boolean;
}

/** A model that gives its answers one after the other; which is next is told by the answers that a request already holds. */
class SealedModel {
  readonly #played: Played;

  constructor(played: Played) {
    this.#played = played;
  }

  answer(n: number): SealedAnswer {
    const { wire, awkward, calls } = this.#played;
    return wire.answer(n, awkward[n % awkward.length]!, calls(n));
  }

  reply(request: RecordedModelRequest): ModelReply {
    const { steps } = this.answer(answersIn(request) + 1);
    return { kind: "stream", steps: this.#played.ascii === true ? asAscii(steps) : steps };
  }

  /** What is wrong with the reasoning in a request that should hold that of the answers from `first` on; undefined where all is right. */
  fault(request: Pick<RecordedModelRequest, "body" | "json">, first: number): string | undefined {
    const { wire } = this.#played;
    const count = answersIn(request);
    const body = Buffer.from(request.body);
    let from = 0;
    let kept = 0;
    for (let n = first; n <= count; n += 1) {
      for (const [index, piece] of this.answer(n).kept.entries()) {
        const at = body.indexOf(piece, from, "utf8");
        if (at < 0) return `piece ${index} of answer ${n} is not there, or not in its place`;
        from = at + Buffer.byteLength(piece);
        kept += 1;
      }
    }
    const found = wire.count(request.json);
    return found === kept ? undefined : `there are ${found} pieces, and should be ${kept}`;
  }

  catalog(server: ModelServer): ModelCatalog {
    const { wire } = this.#played;
    return createModelCatalog({ routes: [{ match: wire.model, provider: providerOf(wire, server) }] });
  }

  /** What is wrong with requests that should each hold all that came before it. */
  faultsIn(requests: readonly RecordedModelRequest[]): readonly string[] {
    return requests.flatMap((request) => request.refusal ?? this.fault(request, 1) ?? []);
  }
}

/** How many answers a request holds. */
function answersIn({ body }: Pick<RecordedModelRequest, "body">): number {
  return new Set(
    Buffer.from(body)
      .toString("utf8")
      .match(/answer \d+\./g),
  ).size;
}

/** A host over the journal file in a folder; with a death, one that comes to an end there. */
async function openHost(
  folder: string,
  options: {
    readonly models: ModelCatalog;
    readonly ports: ReturnType<typeof seededPorts>;
    readonly hostId: string;
    readonly death?: Death;
    readonly result?: string;
  },
) {
  const { models, ports, hostId, death, result = "found it" } = options;
  const journal = await openSqliteStore({ folder, clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const dying = death === undefined ? undefined : new DyingStore(journal, death);
  const look = { idempotent: true, run: async () => ({ output: { result } }) };
  const host = new TestHost({
    journal: dying?.view() ?? journal,
    ports,
    hostId,
    models,
    harnesses: { test: createAgentHarness() },
    tools: new TestTools({ look }),
  });
  return {
    host,
    isDead: () => dying?.dead === true,
    turn: async (session: SessionUid, text: string, config = ROOMY) => (await host.begin(session, [text], { config })).outcome,
    [Symbol.asyncDispose]: async () => {
      await host[Symbol.asyncDispose]();
      await journal[Symbol.asyncDispose]();
    },
  };
}

describe.each(SEALED_WIRES)("$name", (wire) => {
  it.each([false, true])(
    "comes back wherever its host was killed, after the resume and in the turns that follow; in ASCII: %s",
    async (ascii) => {
      const model = new SealedModel({ wire, awkward: AWKWARD, calls: (n) => n % 3 !== 0, ascii });
      let deaths = 0;
      // Every third append: the run in ASCII dies at others.
      for (let atAppend = ascii ? 2 : 3, isDead = true; isDead; atAppend += 3) {
        await using server = await startModelServer({ fallback: (request) => model.reply(request) });
        using folder = new TemporaryFolder();
        const ports = seededPorts();
        const models = model.catalog(server);
        let session: SessionUid;
        {
          await using first = await openHost(folder.path, { models, ports, hostId: "first", death: { atAppend, when: "after" } });
          session = await first.host.createSession({ model: wire.model });
          await first.turn(session, "one");
          isDead = first.isDead();
          deaths += isDead ? 1 : 0;
        }
        ports.clock.advance(CONTROLLER_LIMITS.leaseMs + 1);
        await using second = await openHost(folder.path, { models, ports, hostId: "second" });
        await resumed(second.host, session);
        for (const text of ["two", "three"]) expect(await second.turn(session, text)).toMatchObject({ state: "COMPLETED" });
        expect(model.faultsIn(server.requests)).toEqual([]);
        expect(answersIn(server.requests.at(-1)!)).toBe(8);
      }
      expect(deaths).toBeGreaterThan(2);
    },
  );

  it("comes back in a fork at every record", async () => {
    const model = new SealedModel({ wire, awkward: AWKWARD, calls: (n) => n % 3 !== 0 });
    await using server = await startModelServer({ fallback: (request) => model.reply(request) });
    using folder = new TemporaryFolder();
    const ports = seededPorts();
    await using at = await openHost(folder.path, { models: model.catalog(server), ports, hostId: "one" });
    const session = await at.host.createSession({ model: wire.model });
    for (const text of ["one", "two"]) await at.turn(session, text);
    const { lastSeq } = (await at.host.journal.get(session))!.projection;
    const before = server.requests.length;
    for (let seq = 1; seq <= lastSeq; seq += 1) {
      const uid = newSessionUid(ports);
      await at.host.controller.fork({ parent: session, atSeq: seqOf(seq), children: ({ seed }) => [{ ...seed, uid, name: "" }] });
      expect(await at.turn(uid, "and now?")).toMatchObject({ kind: "ended", state: "COMPLETED" });
    }
    expect(server.requests.length).toBeGreaterThan(before + lastSeq);
    expect(model.faultsIn(server.requests)).toEqual([]);
  });

  it("stays since the user's last word where results are left out to save room", async () => {
    const model = new SealedModel({ wire, awkward: MIDDLING, calls: (n) => n % 8 !== 0 });
    await using server = await startModelServer({ fallback: (request) => model.reply(request) });
    using folder = new TemporaryFolder();
    const ports = seededPorts();
    const result = "a line of what was found. ".repeat(120);
    await using at = await openHost(folder.path, { models: model.catalog(server), ports, hostId: "one", result });
    const session = await at.host.createSession({ model: wire.model });
    // So much that old results have to go, and then some of the old reasoning, and that nothing has to be summarised.
    const reasoningTokens = Array.from({ length: 16 }, (_, index) => model.answer(index + 1).kept.join("").length / 3);
    const share = reasoningTokens.reduce((sum, tokens) => sum + tokens, 2_600);
    const config = agentConfig({ tools: { free: ["*"] }, context: { max_tokens: Math.round(share / 0.6) } });
    for (const text of ["one", "two", "three"]) expect(await at.turn(session, text, config)).toMatchObject({ state: "COMPLETED" });
    let shortened = 0;
    let dropped = 0;
    for (const request of server.requests) {
      expect(request.refusal).toBeUndefined();
      const count = answersIn(request);
      const isShorter = Buffer.from(request.body).includes("left out to save room");
      // Old reasoning goes from the beginning on, answer by answer; that of the open turn stays whole.
      const firsts = Array.from({ length: count + 1 }, (_, index) => index + 1).filter(
        (first) => model.fault(request, first) === undefined,
      );
      expect(firsts[0]).toBeLessThanOrEqual(count - (count % 8) + 1);
      if (!isShorter) expect(firsts[0]).toBe(1);
      shortened += isShorter ? 1 : 0;
      dropped += firsts[0]! > 1 ? 1 : 0;
    }
    expect(shortened).toBeGreaterThan(10);
    expect(dropped).toBeGreaterThan(0);
  });

  it("would be missed if one byte of it were another", async () => {
    const model = new SealedModel({ wire, awkward: AWKWARD, calls: () => true });
    await using server = await startModelServer({ fallback: (request) => model.reply(request) });
    using folder = new TemporaryFolder();
    await using at = await openHost(folder.path, { models: model.catalog(server), ports: seededPorts(), hostId: "one" });
    const session = await at.host.createSession({ model: wire.model });
    await at.turn(session, "one", agentConfig({ tools: { free: ["*"] }, max_steps: 3, context: { max_tokens: 2_000_000 } }));
    const { body, json } = server.requests[2]!;
    expect(model.fault({ body, json }, 1)).toBeUndefined();
    for (const piece of [1, 2].flatMap((n) => model.answer(n).kept)) {
      const changed = Buffer.from(body);
      const place = changed.indexOf(piece) + Buffer.byteLength(piece) - 3;
      changed[place] = changed[place] === 0x41 ? 0x42 : 0x41;
      expect(model.fault({ body: changed, json }, 1)).toMatch(/^piece \d of answer \d is not there/);
    }
    expect(model.fault({ body, json }, 2)).toMatch(/^there are \d pieces/);
  });
});
