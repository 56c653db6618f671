/** SHA-256 of the machine. */

import { hash } from "node:crypto";
import type { Digest } from "../base/ports.ts";

/** Node's one-shot hash: half the cost of a Hash object for what a record holds. */
export const nodeDigest: Digest = { sha256Hex: (data) => hash("sha256", data, "hex") };
