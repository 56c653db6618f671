import { create } from "@bufbuild/protobuf";
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { ListApprovalsRequestSchema, WatchApprovalsRequestSchema, type ApprovalUpdate } from "../gen/holdfast/v1/calls_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import { ALLOW_ALL } from "./access.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { decide, gatedCall, parkedSession, ToolWorld } from "../testing/index.ts";
import { ApprovalFeed } from "./approval-feed.ts";
import type { CallContext } from "./contract.ts";
import { createToolCallsService } from "./tool-calls.ts";

function setup() {
  const feed = new ApprovalFeed();
  const world = new ToolWorld(
    ({ clock, digest }) => feed.over(createMemoryStore({ clock, digest })),
    async (_, sink) => void (await sink.toolCall(gatedCall("pay", "p1", { args: { amount: 7 } }))),
    { pay: async () => ({ output: {} }) },
  );
  const host = world.host();
  const shared = { journal: world.journal, controller: host.controller, authorizer: ALLOW_ALL, ports: world.ports };
  const ended = new AbortController();
  const context: CallContext = { caller: { identity: undefined }, signal: ended.signal };
  const watch = (project = "") =>
    createToolCallsService({ ...shared, feed }).watchApprovals(create(WatchApprovalsRequestSchema, { project }), context);
  return { world, host, watch, shared, feed, context, ended };
}

const wordOf = ({ update }: ApprovalUpdate): string =>
  update.case === "requested" || update.case === "decided" ? `${update.case} ${update.value.session}` : (update.case ?? "");

async function next(updates: AsyncGenerator<ApprovalUpdate, void, undefined>): Promise<ApprovalUpdate> {
  const item = await updates.next();
  if (item.done === true) throw new Error("the stream has ended");
  return item.value;
}

describe("watching approvals", () => {
  it("begins with what waits, goes on with what is asked and decided, and tells nothing twice", async () => {
    const { host, watch, ended } = setup();
    const first = await parkedSession(host);
    const updates = watch();
    expect(wordOf(await next(updates))).toBe(`requested ${first.session}`);
    // What comes while the listing is read is heard of, and told once.
    const second = await parkedSession(host);
    const words = [wordOf(await next(updates)), wordOf(await next(updates))];
    expect(words.toSorted()).toEqual(["listed", `requested ${second.session}`]);
    await decide(host, first.session, first.ref, false, { who: "user://a", reason: "no" });
    const { update } = await next(updates);
    expect(update).toMatchObject({
      case: "decided",
      value: { session: first.session, approved: false, reason: "no", decisionSeq: 5n, actor: { principal: "user://a" }, ref: first.ref },
    });
    const third = await parkedSession(host);
    expect((await next(updates)).update).toMatchObject({
      case: "requested",
      value: { session: third.session, ref: third.ref, call: { tool: "pay", args: { amount: 7 } }, reason: "pay requires approval" },
    });
    ended.abort(new Error("gone"));
    await expect(updates.next()).rejects.toThrow("gone");
    await host[Symbol.asyncDispose]();
  });

  it("leaves nothing at the signal of its caller, however it ends", async () => {
    const { host, world, watch, shared, feed, context } = setup();
    await using _ = host;
    const listeners = () => getEventListeners(context.signal, "abort").length;
    const left = watch();
    expect(wordOf(await next(left))).toBe("listed");
    expect(listeners()).toBe(1);
    await left.return();
    expect(listeners()).toBe(0);
    const unread: JournalStore = { ...world.journal, list: () => Promise.reject(new Error("the disk is busy")) };
    const failing = createToolCallsService({ ...shared, journal: unread, feed }).watchApprovals(
      create(WatchApprovalsRequestSchema),
      context,
    );
    await expect(failing.next()).rejects.toThrow("the disk is busy");
    expect(listeners()).toBe(0);
  });

  it("tells what a listing tells, of its project alone", async () => {
    const { host, watch, shared, context } = setup();
    await using _ = host;
    const { session } = await parkedSession(host);
    const updates = watch();
    const listed = await createToolCallsService(shared).listApprovals(create(ListApprovalsRequestSchema), context);
    expect((await next(updates)).update.value).toEqual(listed.approvals[0]);
    expect(listed.approvals[0]?.session).toBe(session);
    const other = watch("other");
    expect(wordOf(await next(other))).toBe("listed");
    const elsewhere = await host.createSession({ project: "other" });
    await parkedSession(host);
    await (
      await host.begin(elsewhere, [])
    ).outcome;
    expect(wordOf(await next(other))).toBe(`requested ${elsewhere}`);
    await Promise.all([updates.return(), other.return()]);
  });

  it("tells that a request is over whose turn was cancelled", async () => {
    const { host, watch } = setup();
    await using _ = host;
    const { session } = await parkedSession(host);
    const updates = watch();
    await next(updates);
    await next(updates);
    await host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect((await next(updates)).update).toMatchObject({ case: "decided", value: { session, approved: false } });
    await updates.return();
  });

  it("lets a caller go who is too slow", async () => {
    const { world, host, watch } = setup();
    await using _ = host;
    const updates = watch();
    await next(updates);
    const { session, ref } = await parkedSession(host);
    for (let count = 0; count < 600; count++) await parkedSession(host);
    await decide(host, session, ref, true);
    for (let count = 0; count < 500; count++) await parkedSession(host);
    expect((await world.journal.list({ openApproval: true, limit: 1 })).rows).toHaveLength(1);
    const all = Array.fromAsync(updates);
    await expect(all).rejects.toMatchObject({ code: "aborted" });
  });

  it("is refused where nobody tells", async () => {
    const { host, shared, context } = setup();
    await using _ = host;
    const updates = createToolCallsService(shared).watchApprovals(create(WatchApprovalsRequestSchema), context);
    await expect(updates.next()).rejects.toMatchObject({ code: "unimplemented" });
  });
});
