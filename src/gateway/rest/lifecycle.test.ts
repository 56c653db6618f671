import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError, SILENT_LOG } from "../../base/index.ts";
import { TurnCheck_Outcome, TurnCheckSchema, type TurnCheck } from "../../gen/holdfast/v1/replay_pb.ts";
import { startServer } from "../../server/index.ts";
import type { JournalService, SessionsService } from "../../service/contract.ts";
import { textMessage } from "../../spi/index.ts";
import { testHarness, TestModel, type HarnessRun } from "../../testing/index.ts";
import { createRestApp } from "./index.ts";

/** Suspend, Resume, Fork, Lineage and CheckReplay over real HTTP to a real server. */

const saying =
  (system: string): HarnessRun =>
  async (start, sink) => {
    await sink.model({ model: "scripted", messages: [textMessage("system", system), ...start.inputs] });
  };

interface Bench {
  readonly url: string;
  /** The uid of a session with one turn of five records. */
  readonly uid: string;
  readonly model: TestModel;
}

async function bench(): Promise<Bench> {
  const model = new TestModel();
  const server = await startServer(
    { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" }, defaults: { harness: "kind", model: "" } },
    {
      harnesses: { kind: testHarness(saying("be kind")), rude: testHarness(saying("be rude")) },
      models: [{ match: "scripted", provider: model }],
      log: SILENT_LOG,
    },
  );
  onTestFinished(() => server.shutdown({ graceMs: 0 }));
  const turn = await (await fetch(`${server.url}/v1/exec`, post({ inputs: [{ role: "user", parts: [{ text: { text: "hi" } }] }] }))).text();
  return { url: server.url, uid: /"uid":"([^"]+)"/.exec(turn)?.[1] ?? "", model };
}

type Json = Record<string, unknown>;

const post = (body?: object): RequestInit =>
  body === undefined ? { method: "POST" } : { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };

async function json(response: Response): Promise<Json> {
  return (await response.json()) as Json;
}

const eventsOf = (text: string): [string, Json][] =>
  [...text.matchAll(/event: (\w+)\n(?:id: \d+\n)?data: (.*)\n\n/g)].map(([, event = "", data = ""]) => [event, JSON.parse(data) as Json]);

describe("POST suspend, resume and fork", () => {
  it("do what the calls do; a body may be left out", async () => {
    const { url, uid } = await bench();
    const at = (what: string, body?: object) => fetch(`${url}/v1/sessions/${uid}/${what}`, post(body));
    expect(await json(await at("suspend"))).toMatchObject({ compute_state: "COMPUTE_COLD", last_seq: "6" });
    expect(await json(await at("suspend", { session: uid }))).toMatchObject({ last_seq: "6" });
    expect(await json(await at("resume"))).toMatchObject({ compute_state: "COMPUTE_LIVE", last_seq: "7" });
    const forked = await json(await at("fork", { at_seq: "5", count: 2, child_names: ["left", ""], labels: { a: "b" } }));
    expect(forked["children"]).toMatchObject([
      { metadata: { name: "left" }, parent_uid: uid, fork_seq: "5", labels: { a: "b" } },
      { parent_uid: uid, fork_seq: "5" },
    ]);
    const family = await json(await fetch(`${url}/v1/sessions/${uid}/lineage`));
    expect(family["rows"]).toMatchObject([{ uid }, { parent_uid: uid, depth: 1 }, { parent_uid: uid, depth: 1 }]);
    expect(await json(await fetch(`${url}/v1/sessions/${uid}/lineage?rows_max=1`))).toMatchObject({ rows: [{ uid }], truncated: true });
  });

  it.each([
    ["fork", { at_seq: 99, count: 1 }, 412, "at_seq"],
    ["fork", {}, 400, "count"],
    ["fork", { count: 1, identity: {} }, 400, "identity"],
    ["fork", { count: "many" }, 400, "count"],
    ["suspend", { session: "another" }, 400, "session"],
    ["resume", { boots: true }, 400, "boots"],
  ])("%s %o is refused with its status and its field", async (what, body, status, field) => {
    const { url, uid } = await bench();
    const response = await fetch(`${url}/v1/sessions/${uid}/${what}`, post(body));
    expect([response.status, (await json(response))["field"]]).toEqual([status, field]);
  });
});

describe("GET check", () => {
  it("is a JSON array of checks, or the same as events; no model is asked", async () => {
    const { url, uid, model } = await bench();
    const check = `${url}/v1/sessions/${uid}/check`;
    expect(await json(await fetch(check))).toEqual([
      {
        execution_id: expect.any(String) as string,
        start_seq: "1",
        last_seq: "5",
        end: "COMPLETED",
        outcome: "OUTCOME_SAME",
        effects: "1",
      },
    ]);
    const [other] = (await (await fetch(`${check}?harness=rude`)).json()) as [Json];
    expect(other).toMatchObject({ outcome: "OUTCOME_DIVERGED", divergence: { seq: "3", asked_kind: "model", recorded_call_whole: true } });
    const streamed = await fetch(`${check}?harness=rude`, { headers: { accept: "text/event-stream" } });
    expect(streamed.headers.get("content-type")).toBe("text/event-stream");
    expect(eventsOf(await streamed.text())).toEqual([
      ["check", other],
      ["end", { turns: 1, diverged: 1, refused: 0 }],
    ]);
    expect(model.requests).toHaveLength(1);
  });

  it("is an empty array for a session without turns, and refuses what is wrong before it begins", async () => {
    const { url, uid } = await bench();
    const { metadata } = (await json(await fetch(`${url}/v1/sessions`, post({ session: {} })))) as { metadata: { uid: string } };
    expect(await json(await fetch(`${url}/v1/sessions/${metadata.uid}/check`))).toEqual([]);
    const wrong = await fetch(`${url}/v1/sessions/${uid}/check?harness=nobody`);
    expect([wrong.status, (await json(wrong))["field"]]).toEqual([400, "harness"]);
    expect((await fetch(`${url}/v1/sessions/nobody/check`, { headers: { accept: "text/event-stream" } })).status).toBe(404);
  });

  it("is cut off, and no valid JSON, when it fails in the middle", async () => {
    const journal: Partial<JournalService> = { checkReplay: failing };
    const app = createRestApp({
      toolCalls: {} as never,
      turns: {} as never,
      sessions: {} as SessionsService,
      journal: { ...journal } as JournalService,
      health: { ready: () => Promise.resolve(), closing: new AbortController().signal },
      log: SILENT_LOG,
      authenticate: () => ({ identity: undefined }),
      loopbackOnly: false,
    });
    const response = await app.request("/v1/sessions/u/check");
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow("the disk went away");
  });
});

async function* failing(): AsyncGenerator<TurnCheck, void, undefined> {
  yield create(TurnCheckSchema, { outcome: TurnCheck_Outcome.SAME });
  throw new HoldfastError("unavailable", "journal: the disk went away");
}
