import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError, SILENT_LOG } from "../../base/index.ts";
import { nodeSignatures } from "../../node/index.ts";
import { startServer, type ServerOptions } from "../../server/index.ts";
import { itemsOf, verdictOn } from "../../testing/archive-files.ts";
import { createRestApp } from "./index.ts";

async function serving(options: ServerOptions = {}): Promise<{ url: string; uid: string }> {
  const config = { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" } } as const;
  const server = await startServer(config, { log: SILENT_LOG, ...options });
  onTestFinished(() => server.shutdown({ graceMs: 0 }));
  const turn = await post(`${server.url}/v1/exec`, { inputs: [{ role: "user", parts: [{ text: { text: "hi" } }] }] });
  return { url: server.url, uid: /"uid":"([^"]+)"/.exec(await turn.text())?.[1] ?? "" };
}

function post(url: string, body: object): Promise<Response> {
  return fetch(url, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
}

async function bytesOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer());
}

describe("GET export", () => {
  it("is a download of JSON lines that verifies", async () => {
    const { url, uid } = await serving();
    const response = await fetch(`${url}/v1/sessions/${uid}/export`);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
    expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${uid}.jsonl"`);
    const file = await bytesOf(response);
    const { isIntact, records } = verdictOn(file, { signatures: nodeSignatures });
    expect([isIntact, records, file.toString().split("\n").length]).toEqual([true, 6, itemsOf(file).length + 1]);
  });

  it("has the binary form and the family, when it is asked for them", async () => {
    const { url, uid } = await serving();
    await post(`${url}/v1/sessions/${uid}/fork`, { at_seq: "2", count: 3 });
    const response = await fetch(`${url}/v1/sessions/${uid}/export?format=binary&family=true`);
    expect(response.headers.get("content-type")).toBe("application/octet-stream");
    expect(response.headers.get("content-disposition")).toBe(`attachment; filename="${uid}.hfx"`);
    const file = await bytesOf(response);
    expect(file.subarray(1, 4).toString()).toBe("HFX");
    expect(itemsOf(file).filter(({ kind }) => kind === "session").length).toBe(4);
  });

  it("is a problem when it cannot begin", async () => {
    const { url } = await serving();
    const problem = async (path: string) => {
      const response = await fetch(`${url}${path}`);
      return [response.status, ((await response.json()) as { code: string }).code];
    };
    expect(await problem("/v1/sessions/nobody/export")).toEqual([404, "not_found"]);
    expect(await problem("/v1/sessions/nobody/export?format=xml")).toEqual([400, "invalid_argument"]);
    expect(await problem("/v1/sessions/nobody/export?whole=true")).toEqual([400, "invalid_argument"]);
  });

  it("is cut off, and not ended, when it fails on the way", async () => {
    const journal = {
      async *export() {
        yield new TextEncoder().encode("half");
        throw new HoldfastError("aborted", "session: it was reclaimed while it was exported");
      },
    };
    const app = createRestApp({
      toolCalls: {} as never,
      turns: {} as never,
      sessions: {} as never,
      journal: journal as never,
      health: { ready: async () => undefined, closing: new AbortController().signal },
      log: SILENT_LOG,
      authenticate: () => ({ identity: undefined }),
      loopbackOnly: false,
    });
    const response = await app.request("/v1/sessions/a/export");
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow("reclaimed");
  });

  it("stops reading when its reader goes away", async () => {
    const told = Promise.withResolvers<boolean>();
    const journal = {
      async *export(_: unknown, { signal }: { signal: AbortSignal }) {
        signal.addEventListener("abort", () => told.resolve(true), { once: true });
        for (;;) yield new Uint8Array(1_000);
      },
    };
    const app = createRestApp({
      toolCalls: {} as never,
      turns: {} as never,
      sessions: {} as never,
      journal: journal as never,
      health: { ready: async () => undefined, closing: new AbortController().signal },
      log: SILENT_LOG,
      authenticate: () => ({ identity: undefined }),
      loopbackOnly: false,
    });
    const reader = (await app.request("/v1/sessions/a/export")).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(await told.promise).toBe(true);
  });
});
