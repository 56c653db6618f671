import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Log } from "../base/index.ts";
import { ApprovalFeed } from "../service/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { decide, gatedCall, parkedSession, resumed, ToolWorld, type TestHost } from "../testing/index.ts";
import { webhookHeaders } from "./webhook-message.ts";
import type { WebhookConfig } from "./webhook-config.ts";
import type { WebhookLimits } from "./webhook-sender.ts";
import { startWebhooks, type Webhooks } from "./webhooks.ts";

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: { readonly type: string; readonly data: Record<string, unknown> };
}

type Answer = (response: ServerResponse, count: number) => void;

const taken: Answer = (response) => void response.writeHead(204).end();

/** A receiver on a socket of its own, which keeps what it gets and answers as it is told to. */
async function receiver(answer: Answer = taken) {
  const received: Received[] = [];
  const arrivals: (() => void)[] = [];
  const answers = { now: answer };
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      received.push({ headers: request.headers, text, body: JSON.parse(text) as Received["body"] });
      answers.now(response, received.length);
      for (const arrived of arrivals.splice(0)) arrived();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const has = async (count: number): Promise<void> => {
    while (received.length < count) await new Promise<void>((resolve) => arrivals.push(resolve));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received, has, answers };
}

const KEY = Buffer.alloc(32, 5);
const hookOf = (url: string, more: Partial<WebhookConfig> = {}): WebhookConfig => ({
  url,
  key: KEY,
  projects: undefined,
  includeArgs: false,
  ...more,
});

/** A journal with a feed, and webhooks over it that can be started again. */
function newWorld() {
  const feed = new ApprovalFeed();
  const folder = mkdtempSync(join(tmpdir(), "holdfast-webhooks-"));
  const world = new ToolWorld(
    ({ clock, digest }) => feed.over(createMemoryStore({ clock, digest })),
    async (_, sink) => {
      const { isError } = await sink.toolCall(gatedCall("pay", "p1", { args: { amount: 7 } }));
      await sink.output(isError ? "no" : "yes");
    },
    { pay: async () => ({ output: { ok: true } }) },
  );
  const logged: string[] = [];
  const log: Log = { log: (_, message, fields) => void logged.push(`${message} ${String(fields?.["fault"] ?? "")}`.trim()) };
  const running = new Set<Webhooks>();
  const start = (webhooks: readonly WebhookConfig[], limits: Partial<WebhookLimits> = {}): Webhooks => {
    const started = startWebhooks({ webhooks, journal: world.journal, feed, folder, ports: world.ports, log, limits });
    running.add(started);
    return started;
  };
  onTestFinished(async () => {
    await Promise.all([...running].map((webhooks) => webhooks.stop()));
    rmSync(folder, { recursive: true });
  });
  return { world, folder, start, logged, clock: world.ports.clock };
}

/** Moves the clock on, second by second, until `done`: retries and looks come due meanwhile. */
async function passUntil(clock: { advance(ms: number): void }, done: () => boolean): Promise<void> {
  for (let second = 0; second < 3_600 && !done(); second++) {
    clock.advance(1_000);
    await new Promise(setImmediate);
  }
  expect(done()).toBe(true);
}

const withHost = async (world: ToolWorld, work: (host: TestHost) => Promise<void>): Promise<void> => {
  await using host = world.host();
  await work(host);
};

describe("webhooks", () => {
  it("tell of a request and of its decision by ids, signed, without arguments or reasons", async () => {
    const { world, start } = newWorld();
    const at = await receiver();
    start([hookOf(at.url)]);
    await withHost(world, async (host) => {
      const { session, ref } = await parkedSession(host);
      await at.has(1);
      await decide(host, session, ref, true, { who: "user://a", reason: "a secret" });
      await at.has(2);
      const [asked, decided] = at.received.map(({ body }) => body);
      const common = {
        project: "",
        session,
        session_name: "",
        parent_uid: "",
        harness: "test",
        tool_call_id: "p1",
        request_seq: 3,
        tool: "pay",
      };
      expect(asked).toMatchObject({ type: "approval.requested", data: common });
      const by = { principal: "user://a", issuer: "", subject: "" };
      expect(decided).toMatchObject({ type: "approval.decided", data: { ...common, decision_seq: 5, approved: true, by } });
      expect(at.received.map(({ text }) => text).join()).not.toMatch(/secret|amount/);
      const [first, second] = at.received.map(({ headers }) => headers);
      expect(first!["webhook-id"]).not.toBe(second!["webhook-id"]);
    });
    const { headers, text } = at.received[0]!;
    const signed = `${headers["webhook-id"] as string}.${headers["webhook-timestamp"] as string}.${text}`;
    expect(headers["webhook-signature"]).toBe(`v1,${createHmac("sha256", KEY).update(signed).digest("base64")}`);
  });

  it("sign as Standard Webhooks does", () => {
    const key = Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64");
    const message = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: '{"test": 2432232314}', timeMs: 0, project: "" };
    expect(webhookHeaders(message, key, 1_614_265_330_999)).toMatchObject({
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  it("tell arguments and reasons only where they are asked to, and only of the projects that they are for", async () => {
    const { world, start } = newWorld();
    const all = await receiver();
    const other = await receiver();
    start([hookOf(all.url, { includeArgs: true }), hookOf(other.url, { projects: ["other"] })]);
    await withHost(world, async (host) => {
      await parkedSession(host);
      await all.has(1);
      expect(all.received[0]?.body.data).toMatchObject({ args: { amount: 7 }, reason: "pay requires approval" });
      const session = await host.createSession({ project: "other" });
      await (
        await host.begin(session, [])
      ).outcome;
      await other.has(1);
      expect(other.received.map(({ body }) => body.data["session"])).toEqual([session]);
    });
  });

  it("say nothing of a request that a rule decides at once but the decision", async () => {
    const { world, start } = newWorld();
    const at = await receiver();
    start([hookOf(at.url)]);
    await using host = world.host({ policies: [{ name: "all", tool: "*", args: {}, do: "allow", reason: "" }] });
    await (
      await host.begin(await host.createSession(), [])
    ).outcome;
    await at.has(1);
    expect(at.received.map(({ body }) => body.type)).toEqual(["approval.decided"]);
    expect(at.received[0]?.body.data["by"]).toEqual({ principal: "policy", issuer: "holdfast", subject: "all" });
  });
});

describe("a receiver that does not take an event", () => {
  it("gets it again, the same, until it does; other receivers and the turn wait for nothing", async () => {
    const { world, start, clock, logged } = newWorld();
    const failing = await receiver((response, count) => void response.writeHead(count < 4 ? 503 : 200).end("no"));
    const fine = await receiver();
    start([hookOf(failing.url), hookOf(fine.url)]);
    await withHost(world, async (host) => {
      const { session, ref } = await parkedSession(host);
      await fine.has(1);
      await decide(host, session, ref, true);
      expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
      await fine.has(2);
    });
    await passUntil(clock, () => failing.received.length >= 5);
    const ids = failing.received.map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(2);
    expect(new Set(failing.received.map(({ text }) => text)).size).toBe(2);
    expect(logged).toContain("webhook: an event was not taken status 503");
  });

  it("is not followed to where it points", async () => {
    const { world, start, clock } = newWorld();
    const elsewhere = await receiver();
    const at = await receiver(
      (response, count) => void (count < 3 ? response.writeHead(307, { location: elsewhere.url }).end() : response.writeHead(200).end()),
    );
    start([hookOf(at.url)]);
    await withHost(world, async (host) => void (await parkedSession(host)));
    await passUntil(clock, () => at.received.length >= 3);
    expect(elsewhere.received).toEqual([]);
  });

  it("is given up on where it hangs, and asked again; its answer is never read", async () => {
    const { world, start, clock, logged } = newWorld();
    const at = await receiver((response, count) => {
      // The first hangs before its answer, the second sends one without an end, the third takes it.
      if (count === 2) response.writeHead(500).write("x".repeat(1_000_000));
      if (count > 2) response.writeHead(200).end();
    });
    start([hookOf(at.url)]);
    await withHost(world, async (host) => void (await parkedSession(host)));
    await at.has(1);
    await passUntil(clock, () => at.received.length >= 3);
    expect(logged).toEqual(
      expect.arrayContaining(["webhook: an event was not taken timeout", "webhook: an event was not taken status 500"]),
    );
  });

  it("is given up on after so many attempts, said openly", async () => {
    const { world, start, clock, logged } = newWorld();
    const at = await receiver((response) => void response.writeHead(500).end());
    start([hookOf(at.url)], { attemptsMax: 3 });
    await withHost(world, async (host) => void (await parkedSession(host)));
    await passUntil(clock, () => logged.includes("webhook: an event was given up status 500"));
    expect(at.received).toHaveLength(3);
  });

  it("gets what there was no room for from the journal, later", async () => {
    const { world, start, clock } = newWorld();
    const at = await receiver((response, count) => void response.writeHead(count < 3 ? 500 : 200).end());
    start([hookOf(at.url)], { heldMax: 1 });
    await withHost(world, async (host) => {
      for (const _ of [1, 2, 3]) await parkedSession(host);
    });
    await passUntil(clock, () => new Set(at.received.slice(2).map(({ headers }) => headers["webhook-id"])).size === 3);
  });
});

describe("a start", () => {
  it("tells what an earlier one could not, under the same ids, and what was taken not again", async () => {
    const { world, start, clock } = newWorld();
    const at = await receiver();
    const first = start([hookOf(at.url)]);
    await withHost(world, async (host) => {
      const { session, ref } = await parkedSession(host);
      await at.has(1);
      clock.advance(10 * 60_000);
      at.answers.now = (response) => void response.writeHead(500).end();
      await decide(host, session, ref, true);
      // The turn goes on and ends: what was decided is in no row any longer.
      expect(await resumed(host, session)).toMatchObject({ state: "COMPLETED" });
      await at.has(2);
    });
    await first.stop();
    at.answers.now = taken;
    start([hookOf(at.url)]);
    await at.has(3);
    expect(at.received.map(({ body }) => body.type)).toEqual(["approval.requested", "approval.decided", "approval.decided"]);
    expect(at.received[2]?.headers["webhook-id"]).toBe(at.received[1]?.headers["webhook-id"]);
  });

  it("after a crash tells what was recorded meanwhile, and what it cannot know was taken once more", async () => {
    const { world, start, folder } = newWorld();
    const at = await receiver();
    const first = start([hookOf(at.url)]);
    await withHost(world, async (host) => {
      const { session, ref } = await parkedSession(host);
      await at.has(1);
      await first.stop();
      expect(readFileSync(join(folder, "webhooks.json"), "utf8")).not.toContain("127.0.0.1");
      // Nobody listens while this is decided.
      await decide(host, session, ref, false);
      await resumed(host, session);
    });
    start([hookOf(at.url)]);
    await at.has(3);
    const types = at.received.slice(1).map(({ body }) => body.type);
    expect(types.toSorted()).toEqual(["approval.decided", "approval.requested"]);
    expect(at.received.slice(1).map(({ headers }) => headers["webhook-id"])).toContain(at.received[0]?.headers["webhook-id"]);
  });

  it("tells a receiver that it never knew of everything that waits, and of nothing that is over", async () => {
    const { world, start, clock } = newWorld();
    let waiting = "";
    await withHost(world, async (host) => {
      const { session, ref } = await parkedSession(host);
      await decide(host, session, ref, true);
      await resumed(host, session);
      waiting = (await parkedSession(host)).session;
    });
    clock.advance(3 * 86_400_000);
    const at = await receiver();
    start([hookOf(at.url)]);
    await at.has(1);
    await passUntil(clock, () => true);
    expect(at.received.map(({ body }) => [body.type, body.data["session"]])).toEqual([["approval.requested", waiting]]);
  });
});
