import { describe, expect, it } from "vitest";
import { FrameMeter } from "./meter.ts";

function frame(length: number, { sent = length, flag = 0 } = {}): Buffer {
  const bytes = Buffer.alloc(5 + sent);
  bytes.writeUInt8(flag, 0);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

const meterOf = (bytesMax: number, mayBeCompressed = false): FrameMeter => new FrameMeter({ bytesMax, mayBeCompressed });

describe("the frames of gRPC messages", () => {
  for (const step of [1, 2, 5, 7, 1_000]) {
    it(`are followed when they come in chunks of ${step} bytes`, () => {
      const meter = meterOf(300);
      const bytes = Buffer.concat([frame(0), frame(3), frame(300), frame(0), frame(1)]);
      let completed = 0;
      for (let at = 0; at < bytes.length; at += step) {
        const pushed = meter.push(bytes.subarray(at, at + step));
        expect(pushed.fault).toBe(undefined);
        if (pushed.completed) completed++;
      }
      expect(completed).toBeGreaterThan(0);
      expect(meter.isPartial).toBe(false);
    });
  }

  it("are under way from their first byte to their last", () => {
    const meter = meterOf(10);
    meter.push(frame(10, { sent: 9 }).subarray(0, 1));
    expect(meter.isPartial).toBe(true);
    expect(meter.push(frame(10, { sent: 9 }).subarray(1)).completed).toBe(false);
    expect(meter.isPartial).toBe(true);
    expect(meter.push(Buffer.alloc(1)).completed).toBe(true);
    expect(meter.isPartial).toBe(false);
  });

  it("are too large by their announcement alone", () => {
    const faultOf = (...frames: readonly Buffer[]) => meterOf(10).push(Buffer.concat(frames)).fault;
    expect(faultOf(frame(10, { sent: 0 }))).toBe(undefined);
    expect(faultOf(frame(11, { sent: 0 }))).toBe("oversize");
    expect(faultOf(frame(0xffff_ffff, { sent: 0 }))).toBe("oversize");
    expect(faultOf(frame(4), frame(11, { sent: 0 }))).toBe("oversize");
  });

  it("are none where their first byte says nothing, or that they are compressed where the call does not say how", () => {
    const faultOf = (flag: number, mayBeCompressed: boolean) => meterOf(10, mayBeCompressed).push(frame(4, { flag })).fault;
    expect([0, 1, 2, 255].map((flag) => faultOf(flag, false))).toEqual([undefined, "flag", "flag", "flag"]);
    expect([0, 1, 2, 255].map((flag) => faultOf(flag, true))).toEqual([undefined, undefined, "flag", "flag"]);
    const meter = meterOf(10);
    expect(meter.push(Buffer.concat([frame(4), frame(4, { flag: 7 })]))).toEqual({ fault: "flag", completed: true });
  });
});
