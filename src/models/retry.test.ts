import { describe, expect, it } from "vitest";
import type { ProviderFault } from "./fault.ts";
import { PROVIDER_LIMITS } from "./limits.ts";
import { fractionOf, isRetryable, parseRetryAfter, retryDelayMs } from "./retry.ts";

const NOW_MS = Date.UTC(2026, 10, 30, 12, 0, 0);

describe("Retry-After", () => {
  it.each([
    ["0", 0],
    ["2", 2_000],
    [" 1.5 ", 1_500],
    ["Mon, 30 Nov 2026 12:00:30 GMT", 30_000],
    ["Monday, 30-Nov-26 12:00:30 GMT", 30_000],
    ["Mon Nov 30 12:00:30 2026 GMT", 30_000],
    ["Mon, 30 Nov 2026 11:00:00 GMT", 0],
  ])("%s is %i ms", (header, expected) => {
    expect(parseRetryAfter(header, NOW_MS)).toBe(expected);
  });

  it.each(["", "soon", "-1", "1e9", "12345678901234", "5 apples", "Mon, 99 Nov 2026 12:00:00 GMT", null, undefined])(
    "%j says nothing",
    (header) => {
      expect(parseRetryAfter(header, NOW_MS)).toBeUndefined();
    },
  );
});

describe("the wait before another attempt", () => {
  const busy: ProviderFault = { kind: "status", status: 503 };

  it("doubles, is spread over its upper half, and has an end", () => {
    expect([1, 2, 3].map((attempt) => retryDelayMs(busy, attempt, PROVIDER_LIMITS, 0))).toEqual([250, 500, 1_000]);
    expect([1, 2, 3].map((attempt) => retryDelayMs(busy, attempt, PROVIDER_LIMITS, 0.5))).toEqual([375, 750, 1_500]);
    expect(retryDelayMs(busy, 4, PROVIDER_LIMITS, 0)).toBeUndefined();
    expect(retryDelayMs(busy, 60, { ...PROVIDER_LIMITS, attemptsMax: 100 }, 1)).toBe(8_000);
  });

  it("is what the provider asks for, up to the host's limit", () => {
    const asked = (retryAfterMs: number) => retryDelayMs({ kind: "status", status: 429, retryAfterMs }, 1, PROVIDER_LIMITS, 0.9);
    expect(asked(0)).toBe(0);
    expect(asked(60_000)).toBe(60_000);
    expect(asked(60_001)).toBeUndefined();
  });

  it("is none for a fault that a retry does not mend", () => {
    const final: ProviderFault[] = [
      { kind: "status", status: 400 },
      { kind: "status", status: 307 },
      { kind: "status", status: 500, retryForbidden: true },
      { kind: "stream-error", reason: "invalid_request_error" },
      { kind: "timeout", limit: "first_byte" },
      { kind: "not-a-stream" },
      { kind: "too-large" },
    ];
    expect(final.filter(isRetryable)).toEqual([]);
  });

  it("takes its spread from random bytes", () => {
    expect(fractionOf(Uint8Array.of(0, 0, 0, 0))).toBe(0);
    expect(fractionOf(Uint8Array.of(0, 0, 0, 128))).toBe(0.5);
    expect(fractionOf(Uint8Array.of(255, 255, 255, 255))).toBeLessThan(1);
  });
});
