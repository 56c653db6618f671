import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { newKeyPair, signerOf } from "../node/index.ts";
import { testDigest } from "../testing/ports.ts";
import { fingerprintOf, parseTrustedKeys } from "./index.ts";

const [first, second] = [newKeyPair(), newKeyPair()];
const fingerprint = (privatePem: string) => fingerprintOf(signerOf(privatePem, "key").publicKey, testDigest);

function refusal(text: string): string {
  try {
    parseTrustedKeys(text, testDigest);
  } catch (error) {
    if (error instanceof HoldfastError) return error.message;
  }
  return expect.fail("the list was taken");
}

describe("a list of trusted keys", () => {
  it("holds public keys in PEM and ids, with remarks between", () => {
    const id = fingerprint(second.privatePem).slice(0, 16);
    const keys = parseTrustedKeys(`# ours\n${first.publicPem}\n# theirs\n  ${id.toUpperCase()}  \r\n`, testDigest);
    expect(keys.count).toBe(2);
    expect([first, second, newKeyPair()].map(({ privatePem }) => keys.trusts(fingerprint(privatePem)))).toEqual([true, true, false]);
  });

  it("may say more of a fingerprint than an id does, and no less", () => {
    const whole = fingerprint(first.privatePem);
    for (const digits of [16, 40, 64]) expect(parseTrustedKeys(whole.slice(0, digits), testDigest).trusts(whole)).toBe(true);
    expect(refusal(whole.slice(0, 15))).toMatch(/ids of 16 to 64 hex digits/);
    expect(parseTrustedKeys(`${whole.slice(0, 32)}${"0".repeat(32)}`, testDigest).trusts(whole)).toBe(false);
  });

  it("is refused when it holds anything else, and repeats nothing of it", () => {
    expect(refusal("")).toMatch(/at least one key/);
    expect(refusal("# nobody\n")).toMatch(/at least one key/);
    for (const text of [
      "hello",
      `${first.publicPem}x`,
      first.publicPem.slice(0, -20),
      "-----BEGIN RSA KEY-----\nAAAA\n-----END RSA KEY-----",
    ]) {
      expect(refusal(text)).toBe("trusted_keys: must hold public keys in PEM and ids of 16 to 64 hex digits, one a line");
    }
    const told = refusal(first.privatePem);
    expect(told).toBe("trusted_keys: holds a private key; it must hold public ones");
  });
});
