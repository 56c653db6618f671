/** SHA-256 of the machine. */

import { createHash, hash, type Hash } from "node:crypto";
import type { Digest, RunningHash } from "../base/ports.ts";

/** Node's one-shot hash where all is there: half the cost of a Hash object for what a record holds. */
export const nodeDigest: Digest = {
  sha256Hex: (data) => hash("sha256", data, "hex"),
  sha256: () => runningHash(createHash("sha256")),
};

function runningHash(under: Hash): RunningHash {
  return {
    update: (text) => void under.update(text, "utf8"),
    copy: () => runningHash(under.copy()),
    hex: () => under.digest("hex"),
  };
}
