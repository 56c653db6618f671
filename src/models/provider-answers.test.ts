/** What every provider behind an address answers, and how it fails; over real sockets, against the scripted model server. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import { messageText, type ModelProvider } from "../spi/index.ts";
import type { StreamStep } from "../testing/model-server.ts";
import { MODEL_PROTOCOLS, type ModelProtocol } from "../testing/model-rules.ts";
import { SeededRandom } from "../testing/ports.ts";
import { RecordingClock } from "../testing/recording-clock.ts";
import { googleChunk } from "../testing/model-streams-google.ts";
import { responsesEvent } from "../testing/model-streams-responses.ts";
import { replyText } from "../testing/model-answers.ts";
import { openAiChunk, sse } from "../testing/model-streams.ts";
import {
  everythingOf,
  FIXTURE_KEY,
  neverAborted,
  PROVIDER_TEXT,
  HELLO,
  ProviderFixture,
  type MakeProvider,
} from "../testing/provider-fixture.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { createAnthropicProvider } from "./anthropic.ts";
import { createGoogleProvider, type GoogleProviderOptions } from "./google.ts";
import type { ProviderLimits } from "./limits.ts";
import { createOpenAiProvider } from "./openai.ts";

const MAKE: Readonly<Record<ModelProtocol, MakeProvider<Partial<ProviderLimits>>>> = {
  openai: ({ server, ...options }) => createOpenAiProvider({ baseUrl: server.openAiBaseUrl, ...options }),
  responses: ({ server, ...options }) => createOpenAiProvider({ baseUrl: server.openAiBaseUrl, api: "responses", ...options }),
  anthropic: ({ server, ...options }) => createAnthropicProvider({ baseUrl: server.anthropicBaseUrl, ...options }),
  google: ({ server, ...options }) => createGoogleProvider({ baseUrl: server.googleBaseUrl, ...options }),
};

/** The providers' own names and words. */
const NAMES: Readonly<Record<ModelProtocol, string>> = { openai: "openai", responses: "openai", anthropic: "anthropic", google: "google" };
const STOP_WORDS: Readonly<Record<ModelProtocol, string>> = {
  openai: "stop",
  responses: "completed",
  anthropic: "end_turn",
  google: "STOP",
};
/** A piece of text that is no text. */
const WRONG_TYPES: Readonly<Record<ModelProtocol, StreamStep>> = {
  openai: openAiChunk({ content: { text: "no string" } }),
  responses: responsesEvent("response.output_text.delta", { output_index: 0, delta: 5 }),
  anthropic: sse({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: 5 } }, "content_block_delta"),
  google: googleChunk([{ text: 5 }]),
};
/** How the provider says in its stream that it failed. */
const FAILURES: Readonly<Record<ModelProtocol, StreamStep>> = {
  openai: sse({ type: "error", error: { type: "overloaded_error", message: PROVIDER_TEXT } }, "error"),
  responses: responsesEvent("response.failed", { response: { error: { code: "overloaded_error", message: PROVIDER_TEXT } } }),
  anthropic: sse({ type: "error", error: { type: "overloaded_error", message: PROVIDER_TEXT } }, "error"),
  google: sse({ error: { code: 503, status: "OVERLOADED_ERROR", message: PROVIDER_TEXT } }),
};

/** Providers that would call the vendor's own address. */
const MAKE_AT_VENDOR: Readonly<Record<ModelProtocol, (options: GoogleProviderOptions) => ModelProvider>> = {
  openai: (options) => createOpenAiProvider({ ...options, api: "chat" }),
  responses: createOpenAiProvider,
  anthropic: createAnthropicProvider,
  google: createGoogleProvider,
};

describe.each<ModelProtocol>(MODEL_PROTOCOLS)("the %s provider", (protocol) => {
  let fixture: ProviderFixture<Partial<ProviderLimits>>;
  beforeEach(async () => {
    fixture = await ProviderFixture.start(protocol, MAKE[protocol]);
  });
  afterEach(() => fixture.server.close());

  describe("an answer", () => {
    it("streams text as it comes and ends with one completed chunk that holds the whole message and its usage", async () => {
      fixture.server.script(replyText(protocol, "Hel", "lo", " you"));
      const { response, facts, deltas } = await fixture.complete({});
      expect(deltas.get(0)).toEqual(["Hel", "lo", " you"]);
      expect(response.message.role).toBe("assistant");
      expect(response.message.parts).toHaveLength(1);
      expect(messageText(response.message)).toBe("Hello you");
      expect(response.usage).toMatchObject({ model: "scripted", inputTokens: 7n, outputTokens: 3n, reasoningTokens: 0n });
      expect(facts).toMatchObject({ stopReason: STOP_WORDS[protocol], attempts: 1, cachedInputTokens: 0 });
      expect(facts.latencyMs).toBeGreaterThanOrEqual(0);
    });

    it("hands a piece on before the provider has sent the next", async () => {
      const gate = Promise.withResolvers<void>();
      fixture.server.script({
        kind: "stream",
        steps: [...fixture.opening("first"), { kind: "wait", until: gate.promise }, ...fixture.ending()],
      });
      const chunks = fixture.provider({}).complete(HELLO, { signal: neverAborted() })[Symbol.asyncIterator]();
      expect((await chunks.next()).value).toEqual({ kind: "text", partIndex: 0, text: "first" });
      gate.resolve();
      expect((await chunks.next()).value).toMatchObject({ kind: "completed" });
      expect((await chunks.next()).done).toBe(true);
    });

    it("joins the halves of a surrogate pair, and replaces a half that stays alone", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("a\ud83d", "\ude00b", "c\ud83d"), ...fixture.ending()] });
      const { response, deltas } = await fixture.complete({});
      expect(messageText(response.message)).toBe("a😀bc\ufffd");
      expect(deltas.get(0)?.join("")).toBe("a😀bc\ufffd");
      expect(deltas.get(0)?.every((delta) => delta.isWellFormed())).toBe(true);
    });

    it("sends the key in its header and the same bytes every time", async () => {
      await fixture.complete({});
      await fixture.complete({});
      const { headers } = fixture.server.requests[0] ?? {};
      expect(protocol === "google" ? headers?.["x-goog-api-key"] : headers?.authorization).toBe(
        protocol === "google" ? FIXTURE_KEY : `Bearer ${FIXTURE_KEY}`,
      );
      expect(fixture.server.requests[1]?.body).toEqual(fixture.server.requests[0]?.body);
    });
  });

  describe("an answer that breaks off or breaks the protocol", () => {
    it("is an error when the stream ends as if it were complete", async () => {
      fixture.server.script({ kind: "stream", steps: fixture.opening("half") });
      const error = await fixture.failure({});
      expect(error).toMatchObject({ code: "unavailable", details: { fault: "cut", attempts: 1 } });
    });

    it("is an error when an event is no JSON, and its text is not in it", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("a"), sse(`{"text": "${PROVIDER_TEXT}`, "content_block_delta")] });
      const error = await fixture.failure({});
      expect(error).toMatchObject({ code: "unavailable", details: { fault: "malformed" } });
      expectNothingOf(error, [PROVIDER_TEXT, "8812"]);
    });

    it("is an error when a field has another type than the protocol says", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("a"), WRONG_TYPES[protocol], ...fixture.ending()] });
      expect(await fixture.failure({})).toMatchObject({ code: "unavailable", details: { fault: "malformed" } });
    });

    it("is an error when the provider says in its stream that it failed", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("a"), FAILURES[protocol]] });
      const error = await fixture.failure({});
      expect(error).toMatchObject({ code: "unavailable", details: { fault: "stream-error", reason: "overloaded_error" } });
      expectNothingOf(error, [PROVIDER_TEXT, "8812"]);
    });

    it("is an error when it is larger than the host takes", async () => {
      fixture.server.script(replyText(protocol, "x".repeat(5_000)));
      expect((await fixture.failure({ answerBytesMax: 4_000 })).code).toBe("resource_exhausted");
      expect(fixture.server.requests).toHaveLength(1);
    });

    it.each(["text/html", "application/json"])("is an error when a success is %s and no stream", async (type) => {
      fixture.server.script({ kind: "status", status: 200, headers: { "content-type": type }, body: "<html>hello</html>" });
      expect((await fixture.failure({})).code).toBe("failed_precondition");
      expect(fixture.server.requests).toHaveLength(1);
    });
  });

  describe("an error", () => {
    it.each([
      [400, "invalid_argument"],
      [401, "failed_precondition"],
      [402, "resource_exhausted"],
      [403, "failed_precondition"],
      [404, "invalid_argument"],
      [413, "resource_exhausted"],
      [422, "invalid_argument"],
      [429, "resource_exhausted"],
      [500, "unavailable"],
      [529, "unavailable"],
    ] as const)("of status %i is %s, and holds neither the key nor the provider's text nor the address", async (code, expected) => {
      fixture.server.script(...Array.from({ length: 4 }, () => fixture.status(code, { "x-request-id": "req_42", "request-id": "req_42" })));
      const error = await fixture.failure({});
      expect(error.code).toBe(expected);
      expect(error.details).toMatchObject({ provider: NAMES[protocol], status: code, requestId: "req_42", reason: "some_error" });
      expectNothingOf(error, [FIXTURE_KEY, PROVIDER_TEXT, "8812", "127.0.0.1", fixture.server.anthropicBaseUrl]);
    });

    it("of a model that is not served names the field", async () => {
      fixture.server.script(fixture.status(404));
      expect((await fixture.failure({})).field).toBe("model");
    });

    it("of a closed port is unavailable and says which system error it was", async () => {
      await fixture.server.close();
      const error = await fixture.failure({ attemptsMax: 2 });
      expect(error).toMatchObject({ code: "unavailable", details: { fault: "connection", reason: "ECONNREFUSED", attempts: 2 } });
      expectNothingOf(error, [FIXTURE_KEY, "127.0.0.1"]);
    });

    it("comes of a redirect, which is not followed", async () => {
      fixture.server.script(fixture.status(307, { location: `${fixture.server.anthropicBaseUrl}/elsewhere` }));
      expect((await fixture.failure({})).code).toBe("failed_precondition");
      expect(fixture.server.requests).toHaveLength(1);
    });
  });

  describe("options", () => {
    const options = { clock: new RecordingClock(), random: new SeededRandom(1) };
    const make = (change: { readonly apiKey?: string; readonly baseUrl?: string; readonly limits?: Partial<ProviderLimits> }) =>
      MAKE_AT_VENDOR[protocol]({ apiKey: FIXTURE_KEY, ...options, ...change });

    it.each(["", "with space", `${FIXTURE_KEY}\n`, "schlüssel"])("refuse the key %j without repeating it", (apiKey) => {
      const error = catchError(() => make({ apiKey }));
      expect(error).toMatchObject({ code: "invalid_argument", field: "apiKey" });
      expectNothingOf(error, [FIXTURE_KEY]);
    });

    it.each(["nowhere", "ftp://host/v1", `http://user:${FIXTURE_KEY}@host/v1`])(
      "refuse the base URL %s without repeating it",
      (baseUrl) => {
        const error = catchError(() => make({ baseUrl }));
        expect(error).toMatchObject({ code: "invalid_argument", field: "baseUrl" });
        expectNothingOf(error, [FIXTURE_KEY]);
      },
    );

    it("refuse a limit that cannot be kept", () => {
      expect(catchError(() => make({ limits: { idleTimeoutMs: 400_000 } }))).toMatchObject({ field: "limits.idleTimeoutMs" });
      expect(catchError(() => make({ limits: { attemptsMax: 0 } }))).toMatchObject({ field: "limits.attemptsMax" });
    });
  });

  it("refuses a request without messages before anything is sent", async () => {
    const call = collectCompletion(fixture.provider({}).complete({ model: "scripted", messages: [] }, { signal: neverAborted() }));
    await expect(call).rejects.toMatchObject({ code: "invalid_argument", field: "messages" });
    expect(fixture.server.requests).toHaveLength(0);
  });
});

function catchError(run: () => unknown): HoldfastError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(HoldfastError);
    return error as HoldfastError;
  }
  throw new Error("nothing was thrown");
}

function expectNothingOf(error: HoldfastError, secrets: readonly string[]): void {
  const everything = everythingOf(error);
  for (const secret of secrets) expect(everything).not.toContain(secret);
}
