import { describe, expect, it } from "vitest";
import type { HostId, SessionUid } from "../base/index.ts";
import { newSessionState, type SessionState } from "./session-state.ts";
import { StateCache } from "./state-cache.ts";
import type { SessionSeed } from "./store.ts";

function stateOf(uid: string): SessionState {
  const seed: SessionSeed = {
    uid: uid as SessionUid,
    project: "",
    name: "",
    harness: "",
    model: "",
    identity: undefined,
    origin: undefined,
    labels: {},
    annotations: {},
    createTimeMs: 0,
  };
  return newSessionState(1, seed, 0);
}

const LEASE = { holder: "host" as HostId, untilMs: 1 };

describe("StateCache", () => {
  const reads: string[] = [];
  const cacheOf = (limit: number) => {
    reads.length = 0;
    return new StateCache(limit, (uid) => {
      reads.push(uid);
      return uid === "unknown" ? undefined : stateOf(uid);
    });
  };
  const load = (cache: StateCache, uid: string) => cache.load(uid as SessionUid);

  it("reads a session once, and an unknown one every time", () => {
    const cache = cacheOf(10);
    expect(load(cache, "a")).toBe(load(cache, "a"));
    expect([load(cache, "unknown"), load(cache, "unknown")]).toEqual([undefined, undefined]);
    expect(reads).toEqual(["a", "unknown", "unknown"]);
  });

  it("lets go of what was used least recently", () => {
    const cache = cacheOf(2);
    for (const uid of ["a", "b", "a", "c", "a", "b"]) load(cache, uid);
    expect(reads).toEqual(["a", "b", "c", "b"]);
  });

  it("keeps leases of sessions that it let go of, until they are released", () => {
    const cache = cacheOf(1);
    cache.publish({ ...stateOf("a"), lease: LEASE });
    load(cache, "b");
    expect(load(cache, "a")?.lease).toEqual(LEASE);
    cache.clear();
    expect(load(cache, "a")?.lease).toEqual(LEASE);
    cache.publish(stateOf("a"));
    cache.clear();
    expect(load(cache, "a")?.lease).toBeUndefined();
  });
});
