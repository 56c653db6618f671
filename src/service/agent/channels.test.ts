import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { newSessionUid } from "../../base/index.ts";
import { ToolCallSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { ToolResultSchema } from "../../gen/roz/v1/agent_pb.ts";
import { seededPorts } from "../../testing/ports.ts";
import { Channels, type ChannelPort, type OpenRequest } from "./channels.ts";

describe("the channel of a session", () => {
  const call = (id: string) => create(ToolCallSchema, { id, tool: "look" });
  const answer = (toolCallId: string) => create(ToolResultSchema, { toolCallId, success: true, result: "x" });
  const world = () => {
    const ports = seededPorts();
    return { clock: ports.clock, channels: new Channels(ports.clock), session: newSessionUid(ports), signal: new AbortController() };
  };
  const port = () => {
    const asked: OpenRequest[] = [];
    const taken = { over: 0 };
    const made: ChannelPort = { ask: (request) => void asked.push(request), takenOver: () => void (taken.over += 1) };
    return { made, asked, taken };
  };

  it("keeps a request until a stream comes, and its time runs only while it was sent to one", async () => {
    const { clock, channels, session, signal } = world();
    const outcome = channels.request(session, { call: call("c1"), timeoutMs: 1_000 }, signal.signal);
    clock.advance(10_000);
    const [first, second] = [port(), port()];
    channels.attach(session, first.made);
    expect(first.asked.map(({ call: { id } }) => id)).toEqual(["c1"]);
    first.asked[0]!.sent();
    clock.advance(999);
    channels.attach(session, second.made);
    expect(first.taken.over).toBe(1);
    clock.advance(10_000);
    second.asked[0]!.sent();
    clock.advance(999);
    channels.detach(session, first.made);
    channels.detach(session, second.made);
    clock.advance(10_000);
    const third = port();
    channels.attach(session, third.made);
    third.asked[0]!.sent();
    clock.advance(1_000);
    expect(await outcome).toEqual({ kind: "timed-out" });
    expect(channels.answer(session, answer("c1"))).toBe("unknown");
    expect(clock.pending).toBe(0);
  });

  it("takes an answer once, of whatever stream, until the turn is over", async () => {
    const { channels, session, signal } = world();
    const { made } = port();
    channels.attach(session, made);
    const outcome = channels.request(session, { call: call("c1"), timeoutMs: 1_000 }, signal.signal);
    expect(channels.answer(session, answer("c2"))).toBe("unknown");
    expect(channels.answer(session, answer("c1"))).toBe("taken");
    expect(await outcome).toMatchObject({ kind: "answered", result: { result: "x" } });
    expect(channels.answer(session, answer("c1"))).toBe("repeated");
    channels.turnOver(session);
    expect(channels.answer(session, answer("c1"))).toBe("unknown");
  });

  it("gives up a request with its turn, and counts its streams", async () => {
    const { clock, channels, session, signal } = world();
    const [first, second] = [port(), port()];
    channels.attach(session, first.made);
    const outcome = channels.request(session, { call: call("c1"), timeoutMs: 1_000 }, signal.signal);
    first.asked[0]!.sent();
    signal.abort(new Error("cancelled"));
    await expect(outcome).rejects.toThrow("cancelled");
    expect(first.asked[0]!.isOpen).toBe(false);
    expect(clock.pending).toBe(0);
    await expect(channels.request(session, { call: call("c2"), timeoutMs: 1 }, signal.signal)).rejects.toThrow("cancelled");
    channels.attach(session, second.made);
    expect(channels.streams).toBe(1);
    channels.detach(session, first.made);
    expect(channels.streams).toBe(1);
    channels.detach(session, second.made);
    expect(channels.streams).toBe(0);
  });

  it("tells whether a request waits for a stream: at once, when one is made, when the stream goes, and at the latest when asked to", async () => {
    const { channels, session, signal } = world();
    const { made } = port();
    const heard: string[] = [];
    const listen = (name: string, until = signal.signal) => channels.untilUnheard(session, until).then(() => heard.push(name));
    const asking = new AbortController();
    const before = [listen("made"), listen("made")];
    channels.attach(session, made);
    channels.detach(session, made);
    await Promise.resolve();
    expect(heard).toEqual([]);
    const outcome = channels.request(session, { call: call("c1"), timeoutMs: 1_000 }, asking.signal);
    await Promise.all(before);
    await listen("waits");
    channels.attach(session, made);
    const after = listen("gone");
    await Promise.resolve();
    expect(heard).toEqual(["made", "made", "waits"]);
    channels.detach(session, made);
    await after;
    asking.abort(new Error("enough"));
    await expect(outcome).rejects.toThrow("enough");
    const stopping = new AbortController();
    const stopped = listen("asked", stopping.signal);
    stopping.abort();
    await stopped;
    expect(heard).toEqual(["made", "made", "waits", "gone", "asked"]);
  });
});
