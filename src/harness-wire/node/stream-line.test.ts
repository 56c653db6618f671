import { PassThrough } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { systemClock as clock } from "../../node/index.ts";
import { outcomeOf, playOnce, ProbeSink, probeStart } from "../../testing/harness-wire/probe-host.ts";
import { probeHarness } from "../../testing/harness-wire/probe-harness.ts";
import { createLineHarness } from "../index.ts";
import { hostLineOver, serveLineOver } from "./index.ts";

const never = new AbortController().signal;

/** What a harness sends in one turn, as bytes. */
async function spoken(play: string): Promise<Buffer> {
  const [toHost, toHarness] = [new PassThrough(), new PassThrough()];
  const said: Buffer[] = [];
  toHost.on("data", (chunk: Buffer) => said.push(chunk));
  const tap = new PassThrough();
  toHost.pipe(tap);
  serveLineOver({ readable: toHarness, writable: toHost }, probeHarness());
  await using remote = createLineHarness({ line: hostLineOver({ readable: tap, writable: toHarness }), clock });
  await remote.run(probeStart(play), new ProbeSink(), { signal: never });
  return Buffer.concat(said);
}

/** A turn whose harness is these bytes, and then the end of the stream. */
async function against(bytes: Uint8Array): Promise<{ readonly asked: readonly string[]; readonly outcome: string }> {
  const readable = new PassThrough();
  await using remote = createLineHarness({
    line: hostLineOver({ readable, writable: new PassThrough().resume() }, { frameBytesMax: 4_096 }),
    clock,
  });
  const sink = new ProbeSink();
  const running = remote.run(probeStart("a model call and its usage"), sink, { signal: never }).then(() => "completed", outcomeOf);
  readable.write(bytes);
  readable.end();
  return { asked: sink.asked, outcome: await running };
}

/** As `against`, but the bytes after the hello come once the host has opened its exchange, as those of a harness do. */
async function inOrder(bytes: Buffer, cutAt = bytes.length): Promise<{ readonly asked: readonly string[]; readonly outcome: string }> {
  const readable = new PassThrough();
  const writable = new PassThrough().resume();
  await using remote = createLineHarness({ line: hostLineOver({ readable, writable }), clock });
  const sink = new ProbeSink();
  const running = remote.run(probeStart("a model call and its usage"), sink, { signal: never }).then(() => "completed", outcomeOf);
  const helloBytes = 4 + bytes.readUInt32BE(0);
  readable.write(bytes.subarray(0, Math.min(cutAt, helloBytes)));
  if (cutAt > helloBytes) {
    await remote.ready().catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    readable.write(bytes.subarray(helloBytes, cutAt));
  }
  readable.end();
  return { asked: sink.asked, outcome: await running };
}

describe("a line over byte streams", () => {
  it("that is closed after any byte interrupts the turn; only the whole conversation completes it", async () => {
    const whole = await spoken("a model call and its usage");
    const asked = (await playOnce(probeHarness(), probeStart("a model call and its usage"), never)).asked;
    expect(await inOrder(whole)).toEqual({ asked, outcome: "completed" });
    for (let cutAt = 0; cutAt < whole.length; cutAt++) {
      const { outcome, asked: seen } = await inOrder(whole, cutAt);
      expect(outcome, `cut after ${cutAt} bytes`).toMatch(/^threw unavailable/);
      expect(seen).toEqual(asked.slice(0, seen.length));
    }
  });

  it("that brings any bytes at all ends the turn, one way or the other", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), async (bytes) => {
        const { outcome, asked } = await against(bytes);
        expect(outcome).toMatch(/^(threw unavailable|threw failed_precondition|failed 13 harness wire)/);
        expect(asked).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it("that brings a conversation with one byte changed ends the turn as a harness may end it", async () => {
    const whole = await spoken("a model call and its usage");
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), async (place, change) => {
        const changed = Buffer.from(whole);
        changed[place] = changed[place]! ^ change;
        // A length that grew makes the first frame longer than what comes: then nothing is ever opened.
        if (changed.readUInt32BE(0) !== whole.readUInt32BE(0)) return;
        const { outcome } = await inOrder(changed);
        expect(outcome).toMatch(/^(completed|threw|failed)/);
      }),
      { numRuns: 300 },
    );
  });
});
