import { describe, expect, it } from "vitest";
import { FrameMeter } from "./meter.ts";

function frame(length: number, sent = length): Buffer {
  const bytes = Buffer.alloc(5 + sent);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

describe("the frames of gRPC messages", () => {
  for (const step of [1, 2, 5, 7, 1_000]) {
    it(`are followed when they come in chunks of ${step} bytes`, () => {
      const meter = new FrameMeter(300);
      const bytes = Buffer.concat([frame(0), frame(3), frame(300), frame(0), frame(1)]);
      let completed = 0;
      for (let at = 0; at < bytes.length; at += step) {
        const pushed = meter.push(bytes.subarray(at, at + step));
        expect(pushed.oversize).toBe(false);
        if (pushed.completed) completed++;
      }
      expect(completed).toBeGreaterThan(0);
      expect(meter.isPartial).toBe(false);
    });
  }

  it("are under way from their first byte to their last", () => {
    const meter = new FrameMeter(10);
    meter.push(frame(10, 9).subarray(0, 1));
    expect(meter.isPartial).toBe(true);
    expect(meter.push(frame(10, 9).subarray(1)).completed).toBe(false);
    expect(meter.isPartial).toBe(true);
    expect(meter.push(Buffer.alloc(1)).completed).toBe(true);
    expect(meter.isPartial).toBe(false);
  });

  it("are too large by their announcement alone", () => {
    expect(new FrameMeter(10).push(frame(10, 0)).oversize).toBe(false);
    expect(new FrameMeter(10).push(frame(11, 0)).oversize).toBe(true);
    expect(new FrameMeter(10).push(frame(0xffff_ffff, 0)).oversize).toBe(true);
    expect(new FrameMeter(10).push(Buffer.concat([frame(4), frame(11, 0)])).oversize).toBe(true);
  });
});
