import { describe, expect, it } from "vitest";
import { createJsonLog, cryptoRandom, nodeDigest, systemClock } from "./index.ts";

describe("systemClock", () => {
  it("tells whole wall-clock milliseconds and a monotonic time with a fraction", () => {
    const before = Date.now();
    const now = systemClock.nowMs();
    expect(Number.isInteger(now)).toBe(true);
    expect(now).toBeGreaterThanOrEqual(before);
    const first = systemClock.monotonicMs();
    expect(systemClock.monotonicMs()).toBeGreaterThanOrEqual(first);
  });

  it("sleeps for as long as it is asked", async () => {
    const from = systemClock.monotonicMs();
    await systemClock.sleep(20);
    expect(systemClock.monotonicMs() - from).toBeGreaterThanOrEqual(19);
  });

  it("ends a sleep with the signal's reason when it fires", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    const asleep = systemClock.sleep(60_000, { signal: controller.signal });
    controller.abort(reason);
    await expect(asleep).rejects.toBe(reason);
    await expect(systemClock.sleep(60_000, { signal: controller.signal })).rejects.toBe(reason);
  });

  it("runs a task later unless it is cancelled, and cancelling twice does nothing", async () => {
    const ran: string[] = [];
    const cancelled = systemClock.after(1, () => ran.push("cancelled"));
    await new Promise<void>((resolve) => {
      systemClock.after(2, () => {
        ran.push("kept");
        resolve();
      });
      cancelled.cancel();
      cancelled.cancel();
    });
    expect(ran).toEqual(["kept"]);
  });

  it("waits longer than one Node timer can", () => {
    let ran = false;
    const timer = systemClock.after(2 ** 33, () => {
      ran = true;
    });
    return new Promise<void>((resolve) => {
      // Node runs a timer that is too long after one millisecond.
      setTimeout(() => {
        timer.cancel();
        expect(ran).toBe(false);
        resolve();
      }, 10);
    });
  });
});

describe("cryptoRandom", () => {
  it("gives as many fresh bytes as asked, on memory of their own", () => {
    const [left, right] = [cryptoRandom.bytes(32), cryptoRandom.bytes(32)];
    expect(left.length).toBe(32);
    expect(left.buffer.byteLength).toBe(32);
    expect(left).not.toEqual(right);
    expect(cryptoRandom.bytes(0).length).toBe(0);
  });
});

describe("nodeDigest", () => {
  it("is SHA-256 in lowercase hex, a string being its UTF-8 bytes", () => {
    expect(nodeDigest.sha256Hex("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(nodeDigest.sha256Hex("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    const running = nodeDigest.sha256();
    running.update("a");
    const copy = running.copy();
    running.update("bc");
    copy.update("é😀");
    const other = copy.copy();
    expect(running.hex()).toBe(nodeDigest.sha256Hex("abc"));
    expect(copy.hex()).toBe(nodeDigest.sha256Hex("aé😀"));
    other.update("!");
    expect(other.hex()).toBe(nodeDigest.sha256Hex("aé😀!"));
    expect(nodeDigest.sha256Hex("é😀")).toBe(nodeDigest.sha256Hex(new TextEncoder().encode("é😀")));
  });
});

describe("createJsonLog", () => {
  const clock = { ...systemClock, nowMs: () => 1_700_000_000_123 };

  it("writes one JSON object a line", () => {
    const lines: string[] = [];
    createJsonLog({ clock, write: (line) => lines.push(line) }).log("warn", "a disk\nis slow", { ms: 12, host: undefined });
    expect(lines).toEqual(['{"time":"2023-11-14T22:13:20.123Z","level":"warn","message":"a disk\\nis slow","ms":12}\n']);
  });

  it("leaves out what is below its level", () => {
    const lines: string[] = [];
    const log = createJsonLog({ clock, level: "warn", write: (line) => lines.push(line) });
    log.log("info", "left out");
    log.log("error", "kept");
    expect(lines.length).toBe(1);
  });

  it("lets no field hide what every line has, and never throws", () => {
    const lines: string[] = [];
    createJsonLog({ clock, write: (line) => lines.push(line) }).log("info", "true", { message: "false", level: "debug" });
    expect(JSON.parse(lines[0]!)).toMatchObject({ message: "true", level: "info" });
    const failing = createJsonLog({
      clock,
      write: () => {
        throw new Error("no room");
      },
    });
    expect(() => failing.log("error", "unheard")).not.toThrow();
  });
});
