/** Randomness of the machine, fit for ids and keys. */

import { randomFillSync } from "node:crypto";
import type { Random } from "../base/ports.ts";

/** Cryptographically strong random bytes. */
export const cryptoRandom: Random = { bytes: (count) => randomFillSync(new Uint8Array(count)) };
