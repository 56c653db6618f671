/** Whatever happened to a session before: a client that comes now has a turn. */

import type { DoorWire, WireStream } from "./wire-stream.ts";

/** Streams that are tried: one that was opened before may reach the server later, and take the session over. */
const STREAMS_MAX = 5;

/** Has a turn with a session, or with a new one. Resolves with complaints. */
export async function usable(wire: DoorWire, session: string | undefined, timeoutMs: number): Promise<string[]> {
  for (let streams = 1; ; streams++) {
    const stream = wire.open(session === undefined ? {} : { "holdfast-session": session });
    const complaints = await turn(stream, session, timeoutMs);
    stream.finish();
    const isTakenOver = stream.all("error").some(({ code }) => code === "taken_over");
    if (!isTakenOver || streams === STREAMS_MAX) return complaints;
  }
}

async function turn(stream: WireStream, session: string | undefined, timeoutMs: number): Promise<string[]> {
  const complain = (what: string): string[] => [`${what}; heard: ${storyOf(stream)}`];
  const until = (holds: () => boolean): Promise<boolean> => stream.until(() => holds() || stream.end !== undefined, timeoutMs);
  if (session === undefined) stream.say({ case: "start", value: {} });
  await until(() => stream.session !== undefined);
  if (stream.session === undefined) return complain("the session is not to be had");
  // A turn that was begun over an earlier stream may still run.
  const untilMs = performance.now() + timeoutMs;
  const refusals = (): number => stream.all("error").filter(({ code }) => code !== "no_active_turn").length;
  for (let attempt = 0, refused = -1; refused < refusals(); attempt++) {
    refused = refusals();
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    stream.say({ case: "cancelTurn", value: {} });
    stream.say({ case: "userMessage", value: { content: "still there?", messageId: `last-${attempt}` } });
    stream.say({ case: "ping", value: {} });
    await until(() => stream.all("pong").length > attempt);
    if (performance.now() > untilMs || stream.all("pong").length <= attempt) return complain("no turn can be begun");
  }
  const isOver = (): boolean =>
    stream.all("turnComplete").some(({ messageId, stopReason }) => messageId.startsWith("last-") && stopReason === "end_turn");
  await until(isOver);
  return isOver() ? [] : complain("a turn did not complete");
}

function storyOf(stream: WireStream): string {
  const words = stream.heard.map((each) => (each.case === "error" ? `${each.value.code} (${each.value.message})` : String(each.case)));
  return [...words, JSON.stringify(stream.end ?? "open")].join(", ").slice(-500);
}
