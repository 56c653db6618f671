/** Ed25519 on Node: keys in PEM, signatures, and their check. */

import { createPrivateKey, createPublicKey, generateKeyPairSync, sign, verify, type KeyObject } from "node:crypto";
import { invalidArgument } from "../base/errors.ts";
import type { SignatureCheck, Signer } from "../base/ports.ts";

/**
 * The signer of a private key in PEM (PKCS#8). Throws INVALID_ARGUMENT naming `field` for what is no Ed25519 key; nothing of the text is
 * in the error.
 */
export function signerOf(pem: string, field: string): Signer {
  const key = privateKeyIn(pem);
  if (key?.asymmetricKeyType !== "ed25519") throw invalidArgument(field, "must hold one Ed25519 private key in PEM (PKCS#8)");
  const publicKey = spkiOf(createPublicKey(key));
  return { publicKey, sign: async (data) => new Uint8Array(sign(null, data, key)) };
}

/** The library's errors quote the key's text at times, so none of them is kept. */
function privateKeyIn(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

/** Checks signatures with the platform's Ed25519. */
export const nodeSignatures: SignatureCheck = {
  isSignature: (publicKey, data, signature) => {
    const key = publicKeyOf(publicKey);
    return key?.asymmetricKeyType === "ed25519" && verify(null, data, key, signature);
  },
};

function publicKeyOf(spki: Uint8Array): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" });
    // Other bytes for the same key would have another fingerprint.
    return Buffer.from(spki).equals(spkiOf(key)) ? key : undefined;
  } catch {
    return undefined;
  }
}

function spkiOf(key: KeyObject): Uint8Array {
  return new Uint8Array(key.export({ format: "der", type: "spki" }));
}

/** A new key pair in PEM: the private key as PKCS#8, the public one as SubjectPublicKeyInfo. */
export interface KeyPair {
  readonly privatePem: string;
  readonly publicPem: string;
}

export function newKeyPair(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519", {
    privateKeyEncoding: { format: "pem", type: "pkcs8" },
    publicKeyEncoding: { format: "pem", type: "spki" },
  });
  return { privatePem: privateKey, publicPem: publicKey };
}
