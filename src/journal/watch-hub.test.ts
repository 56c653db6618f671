import { describe, expect, it } from "vitest";
import { SILENT_LOG, type SessionUid } from "../base/index.ts";
import { WatchHub } from "./watch-hub.ts";

const SESSION = "a" as SessionUid;

describe("WatchHub", () => {
  it("forgets a session with its last listener", () => {
    const hub = new WatchHub(SILENT_LOG);
    const first = hub.watch(SESSION, () => undefined);
    const second = hub.watch(SESSION, () => undefined);
    first();
    expect(hub.size).toBe(1);
    second();
    expect(hub.size).toBe(0);
  });

  it("counts one function twice when it is added twice", () => {
    const hub = new WatchHub(SILENT_LOG);
    let calls = 0;
    const listener = () => void calls++;
    const first = hub.watch(SESSION, listener);
    hub.watch(SESSION, listener);
    hub.notify(SESSION, []);
    first();
    first();
    hub.notify(SESSION, []);
    expect(calls).toBe(3);
  });

  it("does not call a listener that an earlier one removed, nor yet one that it added", () => {
    const hub = new WatchHub(SILENT_LOG);
    const called: string[] = [];
    hub.watch(SESSION, () => {
      called.push("first");
      removed();
      hub.watch(SESSION, () => called.push("added"));
    });
    const removed = hub.watch(SESSION, () => called.push("removed"));
    hub.notify(SESSION, []);
    expect(called).toEqual(["first"]);
  });

  it("logs a listener that throws, with no word of what it threw, and drops it", () => {
    const lines: string[] = [];
    const hub = new WatchHub({ log: (level, message, fields) => lines.push(JSON.stringify([level, message, fields])) });
    hub.watch(SESSION, () => {
      throw new TypeError("secret");
    });
    hub.notify(SESSION, []);
    hub.notify(SESSION, []);
    expect(lines).toEqual(['["error","a commit listener threw and was removed",{"session":"a","reason":"TypeError"}]']);
    expect(hub.size).toBe(0);
  });
});
