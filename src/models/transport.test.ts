import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Clock } from "../base/index.ts";
import { systemClock } from "../node/index.ts";
import { VirtualClock } from "../testing/ports.ts";
import { observedFetch } from "./transport.ts";

/** A provider whose answers say one thing, and then do as they are told. */
async function provider(after: (response: ServerResponse) => void) {
  let connections = 0;
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: [DONE]\n\n");
    after(response);
  });
  server.on("connection", () => (connections += 1));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, connections: () => connections };
}

/** Asks, reads the one thing, and leaves; the request is aborted while the end is waited for, where its controller is given. */
async function askAndLeave(url: string, aborts?: AbortController, clock: Pick<Clock, "after"> = systemClock): Promise<void> {
  const fetch = observedFetch({ onBytes: () => undefined, answerBytesMax: 1_000, clock });
  const { body } = await fetch(url, aborts === undefined ? {} : { signal: aborts.signal });
  const reader: ReadableStreamDefaultReader<Uint8Array> = body!.getReader();
  expect((await reader.read()).value?.byteLength).toBe(14);
  const left = reader.cancel();
  aborts?.abort();
  await left;
}

describe("an answer whose reader has what it needs", () => {
  it("is let end, so that the next request has its connection", async () => {
    const { url, connections } = await provider((response) => setTimeout(() => response.end(), 2));
    for (let asked = 0; asked < 10; asked++) await askAndLeave(url);
    // One more is opened where the next request comes before the connection is back.
    expect(connections()).toBeLessThan(5);
  });

  it("is cut off where it does not end", async () => {
    const closed = Promise.withResolvers<void>();
    const { url, connections } = await provider((response) => response.on("close", closed.resolve));
    await askAndLeave(url);
    await closed.promise;
    expect(connections()).toBe(1);
  });

  it("is cut off where it goes on beyond what an answer may have, at once", async () => {
    const closed = Promise.withResolvers<void>();
    const { url } = await provider((response) => {
      response.on("close", closed.resolve);
      setTimeout(() => response.write("x".repeat(1_000)), 2);
    });
    // By this clock no time passes.
    await askAndLeave(url, undefined, new VirtualClock(0));
    await closed.promise;
  });

  it("is waited for no longer once its request was aborted", async () => {
    const closed = Promise.withResolvers<void>();
    const { url } = await provider((response) => response.on("close", closed.resolve));
    await askAndLeave(url, new AbortController());
    await closed.promise;
  });
});
