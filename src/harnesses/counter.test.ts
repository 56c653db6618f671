import { describe, expect, it } from "vitest";
import { executionIdOf, SEQ_NONE, sessionUidOf } from "../base/ids.ts";
import { Resumability, textMessage, type Harness, type Start } from "../spi/index.ts";
import { createRecordingSink } from "../testing/recording-sink.ts";
import { createCounterHarness } from "./counter.ts";
import { createReplHarness } from "./repl.ts";

const signal = new AbortController().signal;

function startOf(...inputs: readonly string[]): Start {
  return {
    executionId: executionIdOf("e"),
    sessionUid: sessionUidOf("s"),
    config: new Uint8Array(),
    history: { lastSeq: SEQ_NONE, read: async function* () {} },
    inputs: inputs.map((text) => textMessage("user", text)),
    identity: {},
    resumeFromSeq: 0n,
    model: "",
  };
}

/** What a turn outputs. */
async function outputs(harness: Harness, ...inputs: readonly string[]): Promise<string[]> {
  const sink = createRecordingSink();
  await harness.run(startOf(...inputs), sink, { signal });
  return sink.effects.map((effect) => (effect.kind === "output" ? effect.text : effect.kind));
}

describe("the counter harness", () => {
  it("says that its memory has to be captured", async () => {
    const descriptor = await createCounterHarness().describe();
    expect(descriptor).toMatchObject({ id: "counter", version: "1", capabilities: { forkSafe: true } });
    expect(descriptor.capabilities?.resumability).toBe(Resumability.REQUIRES_MEMORY_SNAPSHOT);
  });

  it("counts its turns, in its memory", async () => {
    const [one, other] = [createCounterHarness(), createCounterHarness()];
    expect([await outputs(one), await outputs(one), await outputs(other)]).toEqual([["1"], ["2"], ["1"]]);
  });
});

describe("the REPL harness", () => {
  it("says that its memory has to be captured", async () => {
    expect(await createReplHarness().describe()).toMatchObject({
      id: "repl",
      capabilities: { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT },
    });
  });

  it("keeps what was declared, by whatever word, also from input to input of one turn", async () => {
    const repl = createReplHarness();
    await outputs(
      repl,
      "let a = 1",
      "const f = (x) => x * a",
      "class Q { #p = 4; get p() { return this.#p } }",
      "function g() { return a }",
    );
    expect(await outputs(repl, "a += 2", "f(5)", "new Q().p", "g()", "var v = 9; v")).toEqual(["3", "15", "4", "3", "9"]);
    expect(await outputs(repl, "v", "let a = 7; a", "a", "g()")).toEqual(["9", "7", "7", "3"]);
  });

  it.each([
    ["1 + 1", "2"],
    ["", "undefined"],
    ["'a\"b'", '"a\\"b"'],
    ["12n", "12n"],
    ["({ a: [1, { b: 2n }] })", '{"a":[1,{"b":"2n"}]}'],
    ["null", "null"],
    ["Symbol('x')", "Symbol(x)"],
    ["(function named() {})", "[function named]"],
    ["() => 1", "[function anonymous]"],
    ["new Map([[1, 'a']])", 'Map [[1,"a"]]'],
    ["new Set([1])", "Set [1]"],
    ["new TypeError('t')", "[TypeError: t]"],
    ["const o = {}; o.o = o; o", "[object]"],
    ["Promise.resolve(7)", "7"],
    ["await Promise.resolve(8)", "8"],
    ["console.log('a', { b: 1 }); 2", 'a {"b":1}\n2'],
    ["throw new RangeError('no')", "Uncaught RangeError: no"],
    ["throw 'text'", 'Uncaught "text"'],
    ["undeclared", "Uncaught ReferenceError: undeclared is not defined"],
  ])("answers %j with %j", async (input, output) => {
    expect(await outputs(createReplHarness(), input)).toEqual([output]);
  });

  it("says that code is no code, and goes on", async () => {
    const repl = createReplHarness();
    expect((await outputs(repl, "let x = ;"))[0]).toMatch(/^Uncaught SyntaxError/);
    expect((await outputs(repl, "await ("))[0]).toMatch(/^Uncaught SyntaxError/);
    expect(await outputs(repl, "let y = 5", "throw 1", "y")).toEqual(["undefined", "Uncaught 1", "5"]);
  });
});
