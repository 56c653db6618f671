/**
 * Signed heads: a host's word that a session's last record was this one at a time. What is signed is one line of canonical JSON, so
 * that anybody can check it with an Ed25519 library and nothing else.
 *
 * Invariant: a head is signed only for the end of a whole session. A prefix has no head, or its signature would vouch for a session
 * that ends there.
 */

import { create, toJson } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs, TimestampSchema, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { SessionUid } from "../base/ids.ts";
import type { Digest, SignatureCheck, Signer } from "../base/ports.ts";
import { canonicalJson } from "../canon/index.ts";
import { SignedHeadSchema, type SignedHead } from "../gen/holdfast/v1/export_pb.ts";
import type { Head } from "../journal/index.ts";

/** How many hex digits of a key's fingerprint are its id. */
export const KEY_ID_DIGITS = 16;

/** A head that nobody signed. */
export function plainHead(session: SessionUid, head: Head): SignedHead {
  return create(SignedHeadSchema, { session, seq: BigInt(head.seq), contentHash: head.hash });
}

/** The head signed at a time, in milliseconds since the epoch. */
export async function signHead(session: SessionUid, head: Head, signer: Signer, digest: Digest, nowMs: number): Promise<SignedHead> {
  const { publicKey } = signer;
  const keyId = fingerprintOf(publicKey, digest).slice(0, KEY_ID_DIGITS);
  const signed = create(SignedHeadSchema, { ...plainHead(session, head), time: timestampFromMs(nowMs), keyId, publicKey });
  signed.signature = await signer.sign(signedBytes(signed));
  return signed;
}

/** The bytes that a head's signature is of. Throws INVALID_ARGUMENT for a uid that no JSON can hold. */
export function signedBytes(head: SignedHead): Uint8Array {
  const text = canonicalJson({
    content_hash: head.contentHash,
    seq: `${head.seq}`,
    session: head.session,
    time: head.time === undefined ? "" : timeText(head.time),
    type: SignedHeadSchema.typeName,
  });
  return new TextEncoder().encode(text);
}

function timeText(time: Timestamp): string {
  return toJson(TimestampSchema, time);
}

/** The lowercase hex SHA-256 of a public key; its first digits are the key's id. */
export function fingerprintOf(publicKey: Uint8Array, digest: Digest): string {
  return digest.sha256Hex(publicKey);
}

/** What a head says of its signature. */
export type HeadSignature =
  | { readonly kind: "none" }
  /** The signature is not that of its key over this head. */
  | { readonly kind: "wrong" }
  | { readonly kind: "right"; readonly fingerprint: string; readonly timeMs: number };

/** Checks the signature of a head. Whether its key is one to be trusted is another question. */
export function checkSignature(head: SignedHead, digest: Digest, check: SignatureCheck): HeadSignature {
  if (head.signature.length === 0) return isBare(head) ? { kind: "none" } : { kind: "wrong" };
  const fingerprint = fingerprintOf(head.publicKey, digest);
  const isRight = head.time !== undefined && fingerprint.startsWith(head.keyId) && head.keyId.length === KEY_ID_DIGITS;
  if (!isRight || !check.isSignature(head.publicKey, signedBytes(head), head.signature)) return { kind: "wrong" };
  return { kind: "right", fingerprint, timeMs: head.time === undefined ? 0 : timestampMs(head.time) };
}

/** Whether a head without a signature has nothing else of one. */
function isBare(head: SignedHead): boolean {
  return head.time === undefined && head.keyId === "" && head.publicKey.length === 0;
}
