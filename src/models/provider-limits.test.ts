/** When every provider behind an address tries again, stops and gives up; over real sockets, on a clock in the hands of the test. */

import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import { messageText } from "../spi/index.ts";
import { MODEL_PROTOCOLS, type ModelProtocol } from "../testing/model-rules.ts";
import type { StreamStep } from "../testing/model-server.ts";
import { replyText } from "../testing/model-answers.ts";
import { sse } from "../testing/model-streams.ts";
import { HELLO, neverAborted, ProviderFixture, type MakeProvider } from "../testing/provider-fixture.ts";
import { WatchedClock } from "../testing/recording-clock.ts";
import { collectCompletion } from "../testing/recording-sink.ts";
import { createAnthropicProvider } from "./anthropic.ts";
import { createGoogleProvider } from "./google.ts";
import type { ProviderLimits } from "./limits.ts";
import { createOpenAiProvider } from "./openai.ts";

const MAKE: Readonly<Record<ModelProtocol, MakeProvider<Partial<ProviderLimits>>>> = {
  openai: ({ server, ...options }) => createOpenAiProvider({ baseUrl: server.openAiBaseUrl, ...options }),
  responses: ({ server, ...options }) => createOpenAiProvider({ baseUrl: server.openAiBaseUrl, api: "responses", ...options }),
  anthropic: ({ server, ...options }) => createAnthropicProvider({ baseUrl: server.anthropicBaseUrl, ...options }),
  google: ({ server, ...options }) => createGoogleProvider({ baseUrl: server.googleBaseUrl, ...options }),
};

describe.each<ModelProtocol>(MODEL_PROTOCOLS)("the %s provider", (protocol) => {
  let fixture: ProviderFixture<Partial<ProviderLimits>>;
  beforeEach(async () => {
    fixture = await ProviderFixture.start(protocol, MAKE[protocol]);
  });
  afterEach(() => fixture.server.close());

  /** The end of an answer in one piece, without what tells the client to close. */
  const wholeEnd = (): StreamStep => {
    const texts = fixture.ending().map((step) => (step.kind === "send" ? step.text : ""));
    return { kind: "send", text: texts.filter((text) => !text.includes("[DONE]")).join("") };
  };

  describe("a retry", () => {
    it.each([408, 409, 429, 500, 502, 503, 529])("happens after status %i, before anything was handed on", async (code) => {
      fixture.server.script(fixture.status(code), replyText(protocol, "ok"));
      const { response, facts } = await fixture.complete({});
      expect(messageText(response.message)).toBe("ok");
      expect(facts.attempts).toBe(2);
      expect(fixture.clock.sleeps).toEqual([250]);
    });

    it.each([400, 401, 402, 403, 404, 405, 413, 422])("does not happen after status %i", async (code) => {
      fixture.server.script(fixture.status(code));
      await fixture.failure({});
      expect(fixture.server.requests).toHaveLength(1);
      expect(fixture.clock.sleeps).toEqual([]);
    });

    it("waits longer each time, up to a limit, and ends after the last attempt", async () => {
      fixture.server.script(...Array.from({ length: 6 }, () => fixture.status(503)));
      const error = await fixture.failure({ attemptsMax: 6, backoffBaseMs: 1_000, backoffMaxMs: 5_000 });
      expect(fixture.clock.sleeps).toEqual([500, 1_000, 2_000, 2_500, 2_500]);
      expect(error.code).toBe("unavailable");
      expect(error.details).toMatchObject({ attempts: 6, status: 503 });
      expect(fixture.server.requests).toHaveLength(6);
    });

    it("waits as long as Retry-After says in seconds", async () => {
      fixture.server.script(fixture.status(429, { "retry-after": "7" }), replyText(protocol, "ok"));
      await fixture.complete({});
      expect(fixture.clock.sleeps).toEqual([7_000]);
    });

    it("waits until the date that Retry-After names", async () => {
      const date = new Date(fixture.clock.nowMs() + 30_000).toUTCString();
      fixture.server.script(fixture.status(429, { "retry-after": date }), replyText(protocol, "ok"));
      await fixture.complete({});
      expect(fixture.clock.sleeps).toEqual([30_000]);
    });

    it("does not happen when Retry-After asks for more than the host waits", async () => {
      fixture.server.script(fixture.status(429, { "retry-after": "3600" }));
      const error = await fixture.failure({});
      expect(error.code).toBe("resource_exhausted");
      expect(fixture.clock.sleeps).toEqual([]);
    });

    it("does not happen when the provider says that it is of no use", async () => {
      fixture.server.script(fixture.status(503, { "x-should-retry": "false" }));
      await fixture.failure({});
      expect(fixture.server.requests).toHaveLength(1);
    });

    it("happens after a connection that was closed without an answer", async () => {
      fixture.server.script({ kind: "cut" }, replyText(protocol, "ok"));
      expect((await fixture.complete({})).facts.attempts).toBe(2);
    });

    it("happens after a stream that broke before its first piece", async () => {
      fixture.server.script({ kind: "stream", steps: [{ kind: "cut" }] }, replyText(protocol, "ok"));
      expect((await fixture.complete({})).facts.attempts).toBe(2);
    });

    it("never happens once a piece was handed on", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("half an ans"), { kind: "cut" }] });
      const error = await fixture.failure({});
      expect(error.code).toBe("unavailable");
      expect(fixture.server.requests).toHaveLength(1);
    });
  });

  describe("cancelling", () => {
    it("closes the connection while an answer streams", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("a"), { kind: "silence" }] });
      const controller = new AbortController();
      const chunks = fixture.provider({}).complete(HELLO, { signal: controller.signal })[Symbol.asyncIterator]();
      await chunks.next();
      const next = chunks.next();
      controller.abort();
      await expect(next).rejects.toMatchObject({ code: "cancelled" });
      await expect((await fixture.server.request(0)).ended).resolves.toBe("client-closed");
    });

    it("closes the connection while the provider has not answered", async () => {
      fixture.server.script({ kind: "silence" });
      const controller = new AbortController();
      const call = collectCompletion(fixture.provider({}).complete(HELLO, { signal: controller.signal }));
      const request = await fixture.server.request(0);
      controller.abort();
      await expect(call).rejects.toMatchObject({ code: "cancelled" });
      await expect(request.ended).resolves.toBe("client-closed");
    });

    it("wins over an answer that was whole when it came", async () => {
      const gate = Promise.withResolvers<void>();
      const steps = [...fixture.opening("a"), { kind: "wait", until: gate.promise } as const, wholeEnd(), { kind: "silence" } as const];
      fixture.server.script({ kind: "stream", steps });
      const clock = new WatchedClock();
      const controller = new AbortController();
      const chunks = fixture.provider({}, clock).complete(HELLO, { signal: controller.signal })[Symbol.asyncIterator]();
      await chunks.next();
      const next = chunks.next();
      const arrived = clock.nextRead();
      gate.resolve();
      await arrived;
      await new Promise((resolve) => setImmediate(resolve));
      controller.abort();
      await expect(next).rejects.toMatchObject({ code: "cancelled" });
    });

    it("ends the wait between two attempts", async () => {
      const standing = new WatchedClock();
      fixture.server.script(fixture.status(503));
      const controller = new AbortController();
      const call = collectCompletion(fixture.provider({}, standing).complete(HELLO, { signal: controller.signal }));
      await (
        await fixture.server.request(0)
      ).ended;
      await vi.waitFor(() => expect(standing.pending).toBe(1));
      controller.abort();
      await expect(call).rejects.toMatchObject({ code: "cancelled" });
      expect(fixture.server.requests).toHaveLength(1);
    });

    it("sends nothing when it comes first, and passes the caller's own error on", async () => {
      const deadline = new HoldfastError("deadline_exceeded", "deadline_unix: it has passed");
      const call = collectCompletion(fixture.provider({}).complete(HELLO, { signal: AbortSignal.abort(deadline) }));
      await expect(call).rejects.toBe(deadline);
      expect(fixture.server.requests).toHaveLength(0);
    });

    it("happens when the caller stops reading", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("a"), { kind: "silence" }] });
      for await (const chunk of fixture.provider({}).complete(HELLO, { signal: neverAborted() })) {
        expect(chunk.kind).toBe("text");
        break;
      }
      await expect((await fixture.server.request(0)).ended).resolves.toBe("client-closed");
    });
  });

  describe("a time limit", () => {
    const limits = { firstByteTimeoutMs: 300, idleTimeoutMs: 100, callTimeoutMs: 1_000 };
    let time: WatchedClock;
    beforeEach(() => {
      time = new WatchedClock();
    });
    const start = () => fixture.provider(limits, time).complete(HELLO, { signal: neverAborted() })[Symbol.asyncIterator]();
    const timeout = (limit: string) => ({ code: "unavailable", details: { fault: "timeout", limit, attempts: 1 } });

    it("ends a call whose answer does not begin, without a retry", async () => {
      fixture.server.script({ kind: "silence" });
      const next = start().next();
      const request = await fixture.server.request(0);
      time.advance(299);
      time.advance(1);
      await expect(next).rejects.toMatchObject(timeout("first_byte"));
      await expect(request.ended).resolves.toBe("client-closed");
      expect(fixture.server.requests).toHaveLength(1);
    });

    it("ends a call whose answer falls silent", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("a"), { kind: "silence" }] });
      const chunks = start();
      await chunks.next();
      const next = chunks.next();
      time.advance(100);
      await expect(next).rejects.toMatchObject(timeout("idle"));
      await expect((await fixture.server.request(0)).ended).resolves.toBe("client-closed");
    });

    it("does not count a silence that keep-alives fill, though the client library swallows them", async () => {
      const keepAlive: StreamStep = protocol === "openai" ? { kind: "send", text: ": still here\n\n" } : sse({ type: "ping" }, "ping");
      const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
      const slow = gates.flatMap((gate): StreamStep[] => [{ kind: "wait", until: gate.promise }, keepAlive]);
      fixture.server.script({ kind: "stream", steps: [...fixture.opening("a"), ...slow, ...fixture.ending()] });
      const chunks = start();
      await chunks.next();
      const next = chunks.next();
      for (const gate of gates) {
        time.advance(90);
        const touched = time.nextRead();
        gate.resolve();
        await touched;
      }
      expect((await next).value).toMatchObject({ kind: "completed" });
    });

    it("does not count the time that the caller takes over a chunk", async () => {
      const gate = Promise.withResolvers<void>();
      fixture.server.script({
        kind: "stream",
        steps: [...fixture.opening("a"), { kind: "wait", until: gate.promise }, ...fixture.ending()],
      });
      const chunks = start();
      await chunks.next();
      time.advance(900);
      gate.resolve();
      expect((await chunks.next()).value).toMatchObject({ kind: "completed" });
    });

    it("ends a call that takes too long as a whole, however steadily the answer comes", async () => {
      fixture.server.script({ kind: "stream", steps: [...fixture.opening(...Array.from({ length: 16 }, () => "x")), { kind: "silence" }] });
      const chunks = start();
      for (let piece = 0; piece < 16; piece++) {
        await chunks.next();
        time.advance(60);
      }
      const next = chunks.next();
      time.advance(40);
      await expect(next).rejects.toMatchObject(timeout("call"));
    });

    it("does not spoil an answer that is whole but whose connection stays open", async () => {
      const gate = Promise.withResolvers<void>();
      const steps = [
        ...fixture.opening("all of it"),
        { kind: "wait", until: gate.promise } as const,
        wholeEnd(),
        { kind: "silence" } as const,
      ];
      fixture.server.script({ kind: "stream", steps });
      const chunks = start();
      await chunks.next();
      const next = chunks.next();
      const arrived = time.nextRead();
      gate.resolve();
      await arrived;
      // The client takes the bytes apart before anything else happens in this process.
      await new Promise((resolve) => setImmediate(resolve));
      time.advance(100);
      expect((await next).value).toMatchObject({ kind: "completed", facts: { attempts: 1 } });
      await chunks.next();
      await expect((await fixture.server.request(0)).ended).resolves.toBe("client-closed");
    });

    it("leaves no timer and no listener behind, whatever the end", async () => {
      const { signal } = new AbortController();
      const call = () => fixture.provider(limits, time).complete(HELLO, { signal });
      const left = () => [time.pending, getEventListeners(signal, "abort").length];
      fixture.server.script(replyText(protocol, "ok"), fixture.status(400), {
        kind: "stream",
        steps: [...fixture.opening("a"), { kind: "silence" }],
      });
      await collectCompletion(call());
      expect(left()).toEqual([0, 0]);
      await expect(collectCompletion(call())).rejects.toMatchObject({ code: "invalid_argument" });
      expect(left()).toEqual([0, 0]);
      for await (const chunk of call()) if (chunk.kind === "text") break;
      expect(left()).toEqual([0, 0]);
    });

    it("ends a call at once when the next wait would outlast it", async () => {
      fixture.server.script(fixture.status(429, { "retry-after": "30" }));
      await fixture.failure({ callTimeoutMs: 10_000 });
      expect(fixture.clock.sleeps).toEqual([]);
    });
  });
});
