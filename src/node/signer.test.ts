import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { newKeyPair, nodeSignatures, signerOf } from "./index.ts";

const data = new TextEncoder().encode("what is signed");

describe("Ed25519 on Node", () => {
  it("signs what its own public key checks, and nothing else", async () => {
    const { privatePem } = newKeyPair();
    const { publicKey, sign } = signerOf(privatePem, "key");
    const signature = await sign(data);
    expect([publicKey.length, signature.length]).toEqual([44, 64]);
    expect(nodeSignatures.isSignature(publicKey, data, signature)).toBe(true);
    expect(nodeSignatures.isSignature(publicKey, data.subarray(1), signature)).toBe(false);
    expect(nodeSignatures.isSignature(signerOf(newKeyPair().privatePem, "key").publicKey, data, signature)).toBe(false);
    expect(nodeSignatures.isSignature(publicKey, data, signature.with(3, (signature[3] ?? 0) ^ 1))).toBe(false);
    expect(nodeSignatures.isSignature(publicKey, data, new Uint8Array())).toBe(false);
  });

  it("takes no bytes for a key that are none, or another encoding of one", async () => {
    const { publicKey, sign } = signerOf(newKeyPair().privatePem, "key");
    const signature = await sign(data);
    for (const key of [new Uint8Array(), publicKey.subarray(1), Uint8Array.of(...publicKey, 0)]) {
      expect(nodeSignatures.isSignature(key, data, signature)).toBe(false);
    }
  });

  it("refuses what is no Ed25519 key, by the name of the setting and without a word of the text", () => {
    const rsa = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({ format: "pem", type: "pkcs8" }).toString();
    const { privatePem, publicPem } = newKeyPair();
    for (const text of ["", "secret", rsa, publicPem, privatePem.slice(0, 60)]) {
      let thrown: unknown;
      try {
        signerOf(text, "HOLDFAST_SIGNING_KEY_FILE");
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(HoldfastError);
      expect(thrown).toMatchObject({ code: "invalid_argument", field: "HOLDFAST_SIGNING_KEY_FILE" });
      expect((thrown as HoldfastError).cause).toBeUndefined();
      expect((thrown as HoldfastError).message).toBe("HOLDFAST_SIGNING_KEY_FILE: must hold one Ed25519 private key in PEM (PKCS#8)");
    }
  });
});
