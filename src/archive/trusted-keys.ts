/**
 * The list of keys that a verifier trusts: public keys in PEM, and ids of keys, one a line. An id is the beginning of the key's
 * fingerprint, of 16 digits or more; the more, the harder it is to make another key that has it.
 */

import { base64Decode } from "@bufbuild/protobuf/wire";
import { invalidArgument } from "../base/errors.ts";
import type { Digest } from "../base/ports.ts";
import { fingerprintOf, KEY_ID_DIGITS } from "./signed-head.ts";

/** Keys that are trusted. */
export interface TrustedKeys {
  /** How many there are. */
  readonly count: number;
  /** Whether the key with this fingerprint (lowercase hex SHA-256 of its SubjectPublicKeyInfo) is one of them. */
  trusts(fingerprint: string): boolean;
}

const PEM = /-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \1-----/g;
const KEY_ID = new RegExp(`^[0-9a-f]{${KEY_ID_DIGITS},64}$`);

/** Reads a list. A line that begins with # is a remark. Throws INVALID_ARGUMENT; nothing of the list is repeated. */
export function parseTrustedKeys(text: string, digest: Digest): TrustedKeys {
  const starts: string[] = [];
  const lines = text.replace(PEM, (_, label: string, body: string) => {
    starts.push(fingerprintOf(publicKeyIn(label, body), digest));
    return "";
  });
  for (const line of lines.split("\n")) {
    const id = line.trim();
    if (id === "" || id.startsWith("#")) continue;
    if (!KEY_ID.test(id.toLowerCase())) throw notAList();
    starts.push(id.toLowerCase());
  }
  if (starts.length === 0) throw invalidArgument("trusted_keys", "must hold at least one key");
  return { count: starts.length, trusts: (fingerprint) => starts.some((start) => fingerprint.startsWith(start)) };
}

function publicKeyIn(label: string, body: string): Uint8Array {
  if (label.includes("PRIVATE")) throw invalidArgument("trusted_keys", "holds a private key; it must hold public ones");
  if (label !== "PUBLIC KEY") throw notAList();
  try {
    return base64Decode(body.replaceAll(/\s/g, ""));
  } catch {
    throw notAList();
  }
}

function notAList(): Error {
  return invalidArgument("trusted_keys", `must hold public keys in PEM and ids of ${KEY_ID_DIGITS} to 64 hex digits, one a line`);
}
