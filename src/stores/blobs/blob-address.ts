/** How a blob is named: by what is in it. */

import { hash } from "node:crypto";
import { HoldfastError, invalidArgument } from "../../base/index.ts";
import type { BlobName, BlobRef } from "../../spi/index.ts";

const SCHEME = "blob:";
const DIGEST = /^sha256:([0-9a-f]{64})$/;

/** The address of `bytes`. It says nothing of where they are, so that a store can be moved. */
export function addressOf(bytes: Uint8Array): BlobRef {
  return { ...nameOf(hash("sha256", bytes, "hex")), sizeBytes: bytes.length };
}

/** The name of the blob with these 64 hex digits. */
export function nameOf(hex: string): BlobName {
  const digest = `sha256:${hex}`;
  return { uri: SCHEME + digest, digest };
}

/** The 64 hex digits of a reference. Throws INVALID_ARGUMENT for one that no such store made: nothing else becomes a file's name. */
export function hexOf(ref: BlobName): string {
  const hex = DIGEST.exec(ref.digest)?.[1];
  if (hex === undefined) throw invalidArgument("digest", "must be sha256: and 64 lowercase hex digits");
  if (ref.uri !== SCHEME + ref.digest) throw invalidArgument("uri", "must be the address that this store gave out, of the same digest");
  return hex;
}

/** `bytes`, if they are what `ref` names. Throws DATA_LOSS where they are not. */
export function checkedBlob(ref: Pick<BlobName, "digest">, bytes: Uint8Array): Uint8Array {
  const { digest } = addressOf(bytes);
  if (digest === ref.digest) return bytes;
  const details = { expected: ref.digest, found: digest, sizeBytes: bytes.length };
  throw new HoldfastError("data_loss", "a stored blob is damaged: its bytes do not have its digest", { details });
}
