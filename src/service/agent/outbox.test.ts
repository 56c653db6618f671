import { describe, expect, it } from "vitest";
import type { Seq } from "../../base/index.ts";
import { Outbox } from "./outbox.ts";
import { sessionError } from "./session-error.ts";

describe("the responses of a stream", () => {
  const seq = (value: number) => value as Seq;
  const said = (message: string) => sessionError("internal", message);
  const words = async (outbox: Outbox): Promise<string[]> => {
    outbox.end();
    return (await Array.fromAsync(outbox.leaving())).map(
      ({ said: each, seq: at }) => `${each?.case === "error" ? each.value.message : "-"} ${at}`,
    );
  };

  it("leave in their order; of updates of a kind the newest alone, in the place of the first and with its cursor", async () => {
    const outbox = new Outbox(8);
    outbox.put([{ said: said("a"), seq: seq(1) }]);
    outbox.putLatest("activity", { said: said("thinking"), seq: seq(1) });
    outbox.put([{ said: said("b"), seq: seq(2) }]);
    outbox.putLatest("activity", { said: said("idle"), seq: seq(2) });
    outbox.put([{ said: undefined, seq: seq(3) }]);
    expect(outbox.lastSeq).toBe(3);
    expect(await words(outbox)).toEqual(["a 1", "idle 1", "b 2", "- 3"]);
  });

  it("are asked as they leave whether they still hold", async () => {
    const outbox = new Outbox(8);
    let isOpen = true;
    outbox.putIf({ said: said("request"), seq: seq(1) }, () => isOpen);
    outbox.put([{ said: said("b"), seq: seq(1) }]);
    isOpen = false;
    expect(await words(outbox)).toEqual(["b 1"]);
  });

  it("make whoever waits for room wait, until some have left", async () => {
    const outbox = new Outbox(2);
    outbox.put([said("a"), said("b")].map((each) => ({ said: each, seq: seq(1) })));
    let hasRoom = false;
    const waiting = outbox.room().then(() => (hasRoom = true));
    await Promise.resolve();
    expect(hasRoom).toBe(false);
    const leaving = outbox.leaving();
    await leaving.next();
    await waiting;
    expect(hasRoom).toBe(true);
    outbox.close();
    expect(await leaving.next()).toEqual({ done: true, value: undefined });
    outbox.put([{ said: said("late"), seq: seq(1) }]);
    expect(await words(outbox)).toEqual([]);
  });
});
