import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../../base/ports.ts";
import type { JournalService, SessionsService } from "../../service/contract.ts";
import { createRestApp } from "./index.ts";

/** Asks the health route, which anybody may ask, with just these headers. */
async function ask(loopbackOnly: boolean, headers: Record<string, string>, method = "GET"): Promise<Response> {
  const app = createRestApp({
    toolCalls: {} as never,
    turns: {} as never,
    sessions: {} as SessionsService,
    journal: {} as JournalService,
    health: { ready: () => Promise.resolve(), closing: new AbortController().signal },
    log: SILENT_LOG,
    authenticate: () => ({ identity: undefined }),
    loopbackOnly,
  });
  return app.request("http://localhost/healthz", { method, headers });
}

describe("a server without a token", () => {
  it.each([
    ["localhost", 200],
    ["localhost:8080", 200],
    ["LOCALHOST:8080", 200],
    ["127.0.0.1:1", 200],
    ["[::1]:8080", 200],
    ["app.localhost", 200],
    ["rebound.example", 403],
    ["127.0.0.1.example", 403],
    ["localhost.example:8080", 403],
    ["10.0.0.7", 403],
    ["", 403],
  ])("serves the host %s with %i", async (host, status) => {
    expect((await ask(true, { host })).status).toBe(status);
  });

  it.each([
    ["its own page", { origin: "http://localhost:80" }, 200],
    ["another site's page", { origin: "https://evil.example" }, 403],
    ["another port's page", { origin: "http://localhost:3000" }, 403],
    ["a page without an origin", { origin: "null" }, 403],
    ["an image of another site", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }, 403],
    ["a page of another port that fetches", { "sec-fetch-site": "same-site", "sec-fetch-mode": "cors" }, 403],
    ["a link of another site", { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }, 200],
    ["the address bar", { "sec-fetch-site": "none" }, 200],
  ])("answers %s as it should", async (_, headers, status) => {
    expect((await ask(true, { host: "localhost:80", ...headers })).status).toBe(status);
  });

  it("says which header was wrong", async () => {
    const response = await ask(true, { host: "rebound.example" });
    const problem = (await response.json()) as Record<string, unknown>;
    expect(problem).toMatchObject({ code: "permission_denied", field: "Host" });
    expect(problem["detail"]).toContain("loopback");
  });

  it("never sends a CORS header, and answers no preflight", async () => {
    const asked = await ask(true, { host: "localhost", origin: "http://localhost" });
    expect([...asked.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    const preflight = await ask(true, { host: "localhost", origin: "http://localhost" }, "OPTIONS");
    expect([preflight.status, preflight.headers.get("allow")]).toEqual([405, "GET"]);
  });
});

describe("a server with a token", () => {
  it("serves any host: a page of another site cannot know the token", async () => {
    expect((await ask(false, { host: "sessions.example", origin: "https://console.example" })).status).toBe(200);
  });
});
