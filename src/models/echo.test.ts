import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { messageText, textMessage } from "../spi/index.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { createEchoProvider } from "./echo.ts";

const signal = new AbortController().signal;
const echo = (...messages: ReturnType<typeof textMessage>[]) =>
  collectCompletion(createEchoProvider().complete({ model: "echo", messages }, { signal }));

describe("the echo provider", () => {
  it("answers echo: and the last user message, in pieces", async () => {
    const { response, deltas, facts } = await echo(
      textMessage("user", "first"),
      textMessage("assistant", "no"),
      textMessage("user", "hello"),
    );
    expect(response.message).toEqual(textMessage("assistant", "echo:hello"));
    expect(deltas.get(0)).toEqual(["echo", ":hel", "lo"]);
    expect(facts).toEqual({ stopReason: "stop", attempts: 1 });
  });

  it("answers to nothing with nothing", async () => {
    expect(messageText((await echo()).response.message)).toBe("echo:");
  });

  it("counts words: all text that came in, the answer that went out", async () => {
    const { response } = await echo(textMessage("system", "be  brief"), textMessage("user", "one two\nthree"));
    expect(response.usage).toMatchObject({ model: "echo", inputTokens: 5n, outputTokens: 3n, reasoningTokens: 0n });
  });

  it("streams well-formed pieces that join to the answer", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme" }), async (text) => {
        const { response, deltas } = await echo(textMessage("user", text));
        const pieces = deltas.get(0) ?? [];
        expect(pieces.join("")).toBe(messageText(response.message));
        expect(pieces.length).toBeLessThanOrEqual(3);
        expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
      }),
      { seed: 3 },
    );
  });

  it("stops when it is told to", async () => {
    const call = createEchoProvider().complete({ model: "echo", messages: [textMessage("user", "x")] }, { signal: AbortSignal.abort() });
    await expect(collectCompletion(call)).rejects.toMatchObject({ code: "cancelled" });
  });
});
