import { getRequestListener } from "@hono/node-server";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../../base/ports.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { ALLOW_ALL, createJournalService, createSessionsService, createToolCallsService, createTurnsService } from "../../service/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { harnessCatalog, testHarness, TestHost, type HarnessRun } from "../../testing/index.ts";
import { createRestApp } from "./index.ts";

/** The REST door over the real services, a real controller and a real store, by real HTTP. */

const saysHello: HarnessRun = async (start, sink) => {
  await sink.output(`hello ${start.inputs.length}`);
};

async function serve(run: HarnessRun = saysHello): Promise<string> {
  const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
  const journal = createMemoryStore(ports);
  const harnesses = { test: testHarness(run) };
  const host = new TestHost({ journal, ports, harnesses });
  const { controller } = host;
  const shared = { journal, controller, harnesses: harnessCatalog(harnesses), authorizer: ALLOW_ALL, ports };
  const app = createRestApp({
    sessions: createSessionsService({ ...shared, defaults: { harness: "test", model: "m" } }),
    journal: createJournalService(shared),
    toolCalls: createToolCallsService(shared),
    turns: createTurnsService(shared),
    health: { ready: () => journal.ready(), closing: new AbortController().signal },
    log: SILENT_LOG,
    authenticate: () => ({ identity: undefined }),
    loopbackOnly: true,
  });
  const listener = getRequestListener((request, env) => app.fetch(request, env), { overrideGlobalObjects: false });
  const server = createServer((request, response) => void listener(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await host[Symbol.asyncDispose]();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Json = Record<string, unknown>;

async function json(response: Response): Promise<Json> {
  return (await response.json()) as Json;
}

const post = (body: object): RequestInit => ({
  method: "POST",
  body: JSON.stringify(body),
  headers: { "content-type": "application/json" },
});

/** The events of a stream, `[name, id, data]` each, until `enough` says so or the stream ends. */
async function events(response: Response, enough: (event: string, data: Json) => boolean = () => false): Promise<[string, string, Json][]> {
  const seen: [string, string, Json][] = [];
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      const event = fields.get("event") ?? "";
      const data = JSON.parse(fields.get("data") ?? "{}") as Json;
      seen.push([event, fields.get("id") ?? "", data]);
      if (enough(event, data)) return seen;
    }
  }
  return seen;
}

const names = (seen: readonly [string, string, Json][]): string[] => seen.map(([event, id]) => `${event}${id === "" ? "" : ` ${id}`}`);

describe("REST over the real services", () => {
  it("creates, runs, reads, pages, verifies, lists, deletes", async () => {
    const url = await serve();
    const created = await json(await fetch(`${url}/v1/sessions`, post({ session: { metadata: { name: "n" }, labels: { a: "b" } } })));
    const { uid } = created["metadata"] as { uid: string };
    expect(created).toMatchObject({ harness: "test", model: "m", exec_state: "EXEC_PENDING", labels: { a: "b" } });

    const inputs = [{ role: "user", parts: [{ text: { text: "hi" } }] }];
    const turn = await events(await fetch(`${url}/v1/sessions/${uid}/exec`, post({ inputs })));
    expect(names(turn)).toEqual(["session", "record 1", "record 2", "record 3", "record 4", "end"]);
    expect(turn[3]![2]).toMatchObject({ seq: "3", event: { kind: "EVENT_OUTPUT", message: { parts: [{ text: { text: "hello 1" } }] } } });

    const page = await json(await fetch(`${url}/v1/sessions/${uid}/records?limit=3`));
    expect(page).toMatchObject({ records: [{ seq: "1", fence: "1" }, { seq: "2" }, { seq: "3" }], next_seq: "4" });
    expect(page["records"]).toEqual(turn.slice(1, 4).map(([, , data]) => data));
    const rest = await json(await fetch(`${url}/v1/sessions/${uid}/records?from_seq=4`));
    expect(rest).toEqual({ records: [turn[4]![2]] });
    expect(await json(await fetch(`${url}/v1/sessions/${uid}/records?from_seq=99`))).toEqual({ records: [] });

    expect(await json(await fetch(`${url}/v1/sessions/${uid}/verify`))).toMatchObject({ intact: true, records: "4", head_seq: "4" });
    const listed = await json(await fetch(`${url}/v1/sessions`));
    expect(listed["sessions"]).toMatchObject([{ metadata: { uid }, exec_state: "EXEC_COMPLETED", last_seq: "4" }]);
    expect(await json(await fetch(`${url}/v1/sessions/${uid}`, { method: "DELETE" }))).toMatchObject({
      deletion_state: "DELETION_PENDING",
    });
    expect(await json(await fetch(`${url}/v1/sessions`))).toEqual({});
    expect(await json(await fetch(`${url}/v1/sessions/${uid}`))).toMatchObject({ compute_state: "COMPUTE_TERMINATED" });
  });

  it("creates the session of a turn that names none, and says its uid first", async () => {
    const url = await serve();
    const [first] = await events(await fetch(`${url}/v1/exec`, post({})));
    const { uid } = first![2]["metadata"] as { uid: string };
    expect((await fetch(`${url}/v1/sessions/${uid}`)).status).toBe(200);
  });

  it("follows a session live, resumes after the last event, and ends when no turn runs", async () => {
    const goOn = Promise.withResolvers<void>();
    const url = await serve(async (_, sink) => {
      await sink.output("one");
      await goOn.promise;
      await sink.output("two");
    });
    const running = await fetch(`${url}/v1/exec`, post({}));
    const [first] = await events(running, (event) => event === "session");
    const { uid } = first![2]["metadata"] as { uid: string };
    const follow = (headers: Record<string, string>, query = ""): Promise<Response> =>
      fetch(`${url}/v1/sessions/${uid}/records${query}`, { headers: { accept: "text/event-stream", ...headers } });

    const before = await events(await follow({}), (_, data) => data["seq"] === "2");
    expect(names(before)).toEqual(["session", "record 1", "record 2"]);
    expect(names(await events(await follow({}, "?until=head")))).toEqual(["session", "record 1", "record 2", "end"]);
    const pastHead = await events(await follow({}, "?from_seq=40&until=head"));
    expect([names(pastHead), pastHead.at(-1)![2]]).toEqual([["session", "end"], { last_seq: "2" }]);
    const after = events(await follow({ "last-event-id": "2" }, "?until=idle"));
    goOn.resolve();
    expect(names(await after)).toEqual(["session", "record 3", "record 4", "end"]);
  });

  it("cancels a running turn; the stream that watches it sees its END", async () => {
    const url = await serve(
      (_start, _sink, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    );
    const running = await fetch(`${url}/v1/exec`, post({}));
    const seen = events(running);
    const listed = await json(await fetch(`${url}/v1/sessions`));
    const [{ metadata }] = listed["sessions"] as [{ metadata: { uid: string } }];
    const cancelled = await json(await fetch(`${url}/v1/sessions/${metadata.uid}/cancel`, { method: "POST" }));
    expect(cancelled).toMatchObject({ exec_state: "EXEC_CANCELED" });
    const last = (await seen).slice(-3).map(([event, , data]) => [event, (data["event"] as Json | undefined)?.["kind"]]);
    expect(last).toEqual([
      ["record", "EVENT_LIFECYCLE"],
      ["record", "EVENT_END"],
      ["end", undefined],
    ]);
  });

  it.each([
    ["GET", "/v1/sessions/nobody", undefined, 404, "uid"],
    ["GET", `/v1/sessions/${"x".repeat(129)}`, undefined, 400, "uid"],
    ["GET", "/v1/sessions/a%00b", undefined, 400, "uid"],
    ["GET", "/v1/sessions/nobody/records", undefined, 404, "session"],
    ["GET", "/v1/sessions/nobody/verify", undefined, 404, "session"],
    ["GET", "/v1/sessions?page_size=-1", undefined, 400, "page_size"],
    ["GET", "/v1/sessions?page_token=unreadable", undefined, 400, "page_token"],
    ["POST", "/v1/sessions", { session: { last_seq: "3" } }, 400, "session.last_seq"],
    ["POST", "/v1/sessions", { session: { harness: "unknown" } }, 400, "session.harness"],
    ["POST", "/v1/exec", { inputs: [{ role: "robot" }] }, 400, "inputs[0].role"],
    ["POST", "/v1/exec", { inputs: [{ role: "user", parts: [{}] }] }, 400, "inputs[0].parts[0]"],
    ["POST", "/v1/exec", { inputs: [{ role: "user", parts: [{ text: { text: "\ud800" } }] }] }, 400, "inputs[0].parts[0].text.text"],
    ["POST", "/v1/exec", { session: "nobody" }, 404, "session"],
    ["POST", "/v1/exec", { expected_last_seq: 5 }, 409, "expected_last_seq"],
    ["POST", "/v1/exec", { deadline_unix: "1" }, 504, "deadline_unix"],
    ["POST", "/v1/sessions/nobody/cancel", { reason: "BOREDOM" }, 400, "reason"],
  ])("%s %s is refused with its status and its field, and nothing is written", async (method, path, body, status, field) => {
    const url = await serve();
    const response = await fetch(`${url}${path}`, body === undefined ? { method } : post(body));
    const problem = await json(response);
    expect([response.status, problem["field"]]).toEqual([status, field]);
    expect(problem["detail"]).toContain(field);
    expect(await json(await fetch(`${url}/v1/sessions`))).toEqual({});
  });
});
