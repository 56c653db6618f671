import { describe, expect, it } from "vitest";
import { DOOR_STORES, doorWorld, environmentWith, pureTool, scriptedModel, type TestDoorWorld } from "../../../e2e/support/door.ts";
import { seqOf, sessionUidOf, type SessionUid } from "../../base/index.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import { approvalRefOf, ownApprovals, startExpirer } from "../../controller/index.ts";
import type { DoorClient } from "../../testing/door-client.ts";
import type { DoorHost } from "../../testing/door-world.ts";

const ASKED = environmentWith({ permissions: [{ tool: "*", policy: "require_confirmation" }] });
const TWO_CALLS = {
  calls: [
    ["look", "c1", {}],
    ["smell", "c2", {}],
  ] as const,
};

/** A turn that waits for a person's word on two tools. */
async function waiting(host: DoorHost): Promise<DoorClient> {
  const client = host.client();
  client.say({ case: "start", value: { tools: [pureTool("look"), pureTool("smell")] } });
  client.say({ case: "userMessage", value: { content: "go", messageId: "m1" } });
  await question(client, "c1");
  await host.host.controller.running(sessionUidOf(client.session))?.outcome;
  return client;
}

const question = (client: DoorClient, callId: string) =>
  client.next("activityUpdate", ({ state, detail }) => state === "waiting_approval" && detail === callId);
const decide = (client: DoorClient, toolCallId: string, approved: boolean) =>
  client.say({ case: "permissionDecision", value: { toolCallId, approved } });
const answer = (client: DoorClient, toolCallId: string) =>
  client.say({ case: "toolResult", value: { toolCallId, success: true, result: "done" } });

/** Decides as the approval inbox does. */
async function decideElsewhere(at: TestDoorWorld, host: DoorHost, session: SessionUid, callId: string, approved: boolean): Promise<void> {
  const row = (await at.journal.get(session))!;
  const open = ownApprovals(row).find(({ toolCallId }) => toolCallId === callId)!;
  await host.host.controller.approve({ session, ref: approvalRefOf(row, open), approved, reason: "by hand", actor: undefined });
}

/** Resolves when the result of a call is on record. */
async function recorded(at: TestDoorWorld, client: DoorClient, callId: string): Promise<void> {
  const session = sessionUidOf(client.session);
  for await (const item of at.host().host.controller.watch({ session, fromSeq: seqOf(1) })) {
    const body = item.kind === "record" ? decodeLogRecord(item.record.bytes).event?.body : undefined;
    if (body?.case === "result" && body.value.id === callId) return;
  }
}

describe.each(DOOR_STORES)("permission questions over %s", (store) => {
  it("are asked one after the other where there are several, and the turn goes on once all have their answer", async () => {
    await using at = await doorWorld(store, { models: scriptedModel(TWO_CALLS), environments: [ASKED] });
    await using host = at.host();
    const client = await waiting(host);
    decide(client, "c1", true);
    await question(client, "c2");
    expect(client.all("toolRequest")).toEqual([]);
    decide(client, "c2", false);
    await client.next("toolRequest");
    answer(client, "c1");
    await client.next("turnComplete");
    expect(client.story()).toEqual(["started", "request look c1", "text done", "complete m1 end_turn"]);
    expect(await at.checks(client.session)).toEqual(["same"]);
  });

  it("may be answered in any order, and the same answer again changes nothing", async () => {
    await using at = await doorWorld(store, { models: scriptedModel(TWO_CALLS), environments: [ASKED] });
    await using host = at.host();
    const client = await waiting(host);
    for (const callId of ["c2", "c2", "c1", "c1"]) decide(client, callId, true);
    await client.next("toolRequest");
    await client.next("toolRequest");
    decide(client, "c1", true);
    answer(client, "c2");
    answer(client, "c1");
    await client.next("turnComplete");
    expect(client.all("error")).toEqual([]);
  });

  it("are invalid_argument for another answer than the one that was given, before and after the call has run", async () => {
    await using at = await doorWorld(store, { models: scriptedModel(TWO_CALLS), environments: [ASKED] });
    await using host = at.host();
    const client = await waiting(host);
    decide(client, "c1", true);
    decide(client, "c1", false);
    const message = "approved: must be true, which the call was decided with, or left alone";
    expect(await client.next("error")).toMatchObject({ code: "invalid_argument", message });
    decide(client, "c2", true);
    await client.next("toolRequest");
    answer(client, "c1");
    await client.next("toolRequest");
    await recorded(at, client, "c1");
    decide(client, "c1", false);
    expect(await client.next("error")).toMatchObject({ code: "invalid_argument", message });
    answer(client, "c2");
    await client.next("turnComplete");
  });

  it("are answered by whoever is first: the stream's client, or another door; either way the turn goes on", async () => {
    await using at = await doorWorld(store, { models: scriptedModel(TWO_CALLS), environments: [ASKED] });
    await using host = at.host();
    const client = await waiting(host);
    const session = sessionUidOf(client.session);
    await decideElsewhere(at, host, session, "c1", true);
    await question(client, "c2");
    await decideElsewhere(at, host, session, "c2", true);
    await client.next("toolRequest");
    decide(client, "c1", true);
    answer(client, "c1");
    answer(client, "c2");
    await client.next("turnComplete");
    expect(client.all("error")).toEqual([]);
  });

  it("are answered by their expiry as well", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ calls: [["look", "c1", {}]] }), environments: [ASKED] });
    await using host = at.host();
    const client = await waiting(host);
    const { journal, ports } = at;
    const policy = { rules: [], expiry: { afterMs: 60_000, answer: "deny" }, resume: false } as const;
    const expirer = startExpirer({ journal, controller: host.host.controller, clock: ports.clock, log: { log: () => undefined }, policy });
    for (let left = 100; client.all("turnComplete").length === 0 && left > 0; left--) {
      ports.clock.advance(1_000);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    await expirer.stop();
    expect(client.story()).toEqual(["started", "text done", "complete m1 end_turn"]);
  });

  it("that were decided while nobody was there are taken up when a client comes", async () => {
    await using at = await doorWorld(store, { models: scriptedModel({ calls: [["look", "c1", {}]] }), environments: [ASKED] });
    await using host = at.host();
    const client = await waiting(host);
    await client.cut();
    await decideElsewhere(at, host, sessionUidOf(client.session), "c1", true);
    const back = host.client({ session: client.session, fromSeq: client.seq });
    await back.next("toolRequest");
    answer(back, "c1");
    await back.next("turnComplete");
  });

  it("are there again for a client that comes back, on the host that there was and on another one", async () => {
    await using at = await doorWorld(store, { models: scriptedModel(TWO_CALLS), environments: [ASKED] });
    const first = at.host();
    const client = await waiting(first);
    await client.cut();
    const back = first.client({ session: client.session, fromSeq: client.seq });
    await question(back, "c1");
    decide(back, "c1", true);
    await question(back, "c2");
    await first[Symbol.asyncDispose]();
    await using second = at.host();
    const again = second.client({ session: client.session, fromSeq: back.seq });
    await question(again, "c2");
    decide(again, "c2", true);
    await again.next("toolRequest");
    await again.next("toolRequest");
    answer(again, "c2");
    answer(again, "c1");
    await again.next("turnComplete");
    expect(await at.checks(client.session)).toEqual(["same"]);
  });

  it("are denied by a cancel", async () => {
    await using at = await doorWorld(store, { models: scriptedModel(TWO_CALLS), environments: [ASKED] });
    await using host = at.host();
    const client = await waiting(host);
    client.say({ case: "cancelTurn", value: {} });
    expect(await client.next("turnComplete")).toMatchObject({ stopReason: "cancelled" });
    client.say({ case: "userMessage", value: { content: "again", messageId: "m2" } });
    await client.next("turnComplete");
  });
});
