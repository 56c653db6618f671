/** Randomness of the machine, fit for ids and keys. */

import { randomFillSync } from "node:crypto";
import type { Random } from "../base/ports.ts";

/** A call to the system costs far more than the few bytes of an id, so they are drawn ahead. */
const POOL_BYTES = 4_096;

/** Cryptographically strong random bytes. What was handed out is wiped from the pool: it is nobody else's any more. */
class PooledRandom implements Random {
  readonly #pool = new Uint8Array(POOL_BYTES);
  #usedBytes = POOL_BYTES;

  bytes(count: number): Uint8Array {
    if (count > POOL_BYTES) return randomFillSync(new Uint8Array(count));
    if (this.#usedBytes + count > POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#usedBytes = 0;
    }
    const endBytes = this.#usedBytes + count;
    const drawn = this.#pool.slice(this.#usedBytes, endBytes);
    this.#pool.fill(0, this.#usedBytes, endBytes);
    this.#usedBytes = endBytes;
    return drawn;
  }
}

/** The machine's randomness. */
export const cryptoRandom: Random = new PooledRandom();
