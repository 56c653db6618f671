import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createHttp1Server, type FetchHandler, type Http1Server } from "./http1.ts";

/** An HTTP/1.1 door on a port of its own. */
async function openDoor(fetch: FetchHandler["fetch"]): Promise<{ readonly url: string; readonly door: Http1Server }> {
  const door = createHttp1Server({ fetch });
  const listener = createServer((socket) => door.accept(socket));
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    listener.close();
    await door.close(0);
  });
  return { url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}/`, door };
}

describe("the HTTP/1.1 door", () => {
  it("tells a handler that its client is gone", async () => {
    const asked = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const { url } = await openDoor(async ({ signal }) => {
      asked.resolve();
      await once(signal, "abort");
      gone.resolve();
      return new Response();
    });
    const client = new AbortController();
    const answer = fetch(url, { signal: client.signal }).catch((error: unknown) => error);
    await asked.promise;
    client.abort();
    expect(await answer).toMatchObject({ name: "AbortError" });
    await gone.promise;
  });

  it("stops a stream's source when its reader is slow, and when it is gone", async () => {
    let sent = 0;
    const cancelled = Promise.withResolvers<void>();
    const { url } = await openDoor(
      () =>
        new Response(
          new ReadableStream<Uint8Array>({
            pull(controller) {
              sent++;
              controller.enqueue(new Uint8Array(64 * 1024));
            },
            cancel: () => cancelled.resolve(),
          }),
        ),
    );
    const client = new AbortController();
    const response = await fetch(url, { signal: client.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    let before = -1;
    await expect.poll(() => sent === before || ((before = sent), false), { interval: 100 }).toBe(true);
    expect(sent).toBeLessThan(500);
    client.abort();
    await cancelled.promise;
  });

  it("lets open requests end when it closes, and takes no further ones", async () => {
    const go = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const { url, door } = await openDoor(async () => {
      asked.resolve();
      await go.promise;
      return new Response("done");
    });
    const open = fetch(url).then((response) => response.text());
    await asked.promise;
    const closed = door.close(10_000);
    go.resolve();
    expect(await open).toBe("done");
    await closed;
  });

  it("cuts off what does not end in time, and what is idle at once", async () => {
    const asked = Promise.withResolvers<void>();
    const { url, door } = await openDoor((request) => {
      if (request.method === "GET") return new Response("idle");
      asked.resolve();
      return new Promise(() => undefined);
    });
    await (await fetch(url)).text();
    const stuck = fetch(url, { method: "POST" }).catch((error: unknown) => error);
    await asked.promise;
    await door.close(20);
    expect(await stuck).toBeInstanceOf(TypeError);
  });
});
