import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import type { Fence, HostId, Seq, SessionUid } from "../../base/index.ts";
import { EventSchema, Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import type { AppendRequest, Writer } from "../../journal/index.ts";
import { AdmissionRules } from "./admission-rules.ts";

const SESSION = "s" as SessionUid;
const [A, B] = ["a" as HostId, "b" as HostId];
const claim = (holder: HostId, more: Partial<Extract<Writer, { kind: "claim" }>> = {}): Writer => ({
  kind: "claim",
  holder,
  leaseMs: 10,
  ...more,
});
const hold = (fence: number): Writer => ({ kind: "hold", fence: fence as Fence });
const release = (fence: number): Writer => ({ kind: "release", fence: fence as Fence });

function append(writer: Writer, expectedLastSeq: number | undefined, events = 1): AppendRequest {
  const event = create(EventSchema);
  return {
    session: SESSION,
    writer,
    expectedLastSeq: expectedLastSeq as Seq | undefined,
    events: Array.from({ length: events }, () => ({ event })),
  };
}

const deletion: AppendRequest = {
  ...append(claim(A, { leaseMs: 0 }), undefined, 0),
  events: [{ event: create(EventSchema, { body: { case: "lifecycle", value: { kind: Lifecycle_Kind.LIFECYCLE_DELETE } } }) }],
};

/** Rules of a session that `a` has held since time 0 under fence 1, with two records. */
function held(): AdmissionRules {
  const rules = new AdmissionRules();
  rules.add(SESSION, { fence: 0, lastSeq: 0 });
  rules.taken(append(claim(A), 0, 2), 1, 0);
  return rules;
}

describe("the rules of admission", () => {
  it("let a claim mint the next fence, and the holder write under it", () => {
    const rules = new AdmissionRules();
    expect(rules.due(append(claim(A), 0), 0)).toEqual({ kind: "not-found" });
    rules.add(SESSION, { fence: 4, lastSeq: 7 });
    expect(rules.due(append(claim(A), 7), 0)).toEqual({ kind: "appended", fence: 5 });
    expect(held().due(append(hold(1), 2), 0)).toEqual({ kind: "appended", fence: 1 });
  });

  it("refuse another holder while the lease lasts, and nobody after it", () => {
    expect(held().due(append(claim(B), 2), 9)).toEqual({ kind: "held" });
    expect(held().due(append(claim(B), 2), 10)).toEqual({ kind: "appended", fence: 2 });
    expect(held().due(append(claim(B, { takeOver: true }), 2), 9)).toEqual({ kind: "appended", fence: 2 });
    expect(held().due(append(claim(A), 2), 9)).toEqual({ kind: "appended", fence: 2 });
  });

  it("refuse an old fence before they look at the head, and a stale head", () => {
    const rules = held();
    rules.taken(append(claim(B, { takeOver: true }), 2, 0), 2, 1);
    expect(rules.due(append(hold(1), 99), 1)).toEqual({ kind: "fenced" });
    expect(rules.due(append(hold(2), 1), 1)).toEqual({ kind: "conflict" });
    expect(rules.due(append(claim(B, { keep: 2 as Fence }), 2), 1)).toEqual({ kind: "appended", fence: 2 });
    expect(rules.due(append(claim(B, { keep: 1 as Fence }), 2), 1)).toEqual({ kind: "fenced" });
  });

  it("end a lease with a release, with a claim without one, and when no process holds anything any more", () => {
    for (const over of [append(release(1), 2), append(claim(A, { leaseMs: 0 }), 2)]) {
      const rules = held();
      rules.taken(over, 1, 1);
      expect(rules.holder(SESSION, 1)).toBeUndefined();
    }
    const rules = held();
    expect(rules.holder(SESSION, 9)).toBe(A);
    rules.forgetLeases();
    expect(rules.holder(SESSION, 9)).toBeUndefined();
  });

  it("renew a lease that is the holder's under its fence, and name those that are lost", () => {
    const rules = held();
    const renewal = (holder: HostId, fence: number) => ({ holder, leaseMs: 10, sessions: [{ session: SESSION, fence: fence as Fence }] });
    expect(rules.renewed(renewal(A, 1), 5)).toEqual([]);
    expect(rules.holder(SESSION, 14)).toBe(A);
    expect(rules.renewed(renewal(B, 1), 5)).toEqual([SESSION]);
    expect(rules.renewed(renewal(A, 2), 5)).toEqual([SESSION]);
  });

  it("take nothing for a deleted session, whose lease is over", () => {
    const rules = held();
    rules.taken(deletion, 2, 1);
    expect(rules.due(append(claim(A), undefined), 1)).toEqual({ kind: "deleted" });
    expect(rules.holder(SESSION, 1)).toBeUndefined();
    expect(rules.isDeleted(SESSION)).toBe(true);
    rules.reclaimed(SESSION);
    expect(rules.due(append(claim(A), undefined), 1)).toEqual({ kind: "not-found" });
    expect(rules.isDeleted(SESSION)).toBe(true);
  });
});
