import { describe, expect, it } from "vitest";
import { cryptoRandom } from "./random.ts";

describe("the machine's randomness", () => {
  it("never hands out a byte twice, and as many as are asked for", () => {
    const seen = new Set<string>();
    for (let round = 0; round < 5_000; round++) seen.add(Buffer.from(cryptoRandom.bytes(16)).toString("hex"));
    expect(seen.size).toBe(5_000);
    for (const count of [0, 1, 4_095, 4_096, 4_097, 70_000]) expect(cryptoRandom.bytes(count)).toHaveLength(count);
  });

  it("is the caller's own: changing it changes nothing that comes later", () => {
    const first = cryptoRandom.bytes(64);
    first.fill(0);
    expect(cryptoRandom.bytes(64).some((byte) => byte !== 0)).toBe(true);
    expect(first.buffer.byteLength).toBe(64);
  });

  it("looks random: each bit is set about half of the time", () => {
    const bytes = cryptoRandom.bytes(1 << 16);
    let ones = 0;
    for (let byte of bytes) for (; byte > 0; byte >>= 1) ones += byte & 1;
    expect(Math.abs(ones / (bytes.length * 8) - 0.5)).toBeLessThan(0.01);
  });
});
