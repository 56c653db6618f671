/**
 * Credentials of running executions: with one, a harness elsewhere reads the history of its own execution and mints tokens for it, while it
 * runs.
 *
 * Invariants: a credential is good for one execution and ends with it; what is kept of it is its hash, so nobody reads one here.
 */

import { base64Encode } from "@bufbuild/protobuf/wire";
import { HoldfastError } from "../base/errors.ts";
import type { Digest, Random } from "../base/ports.ts";
import type { Start } from "../spi/index.ts";

/** A credential that was issued. */
export interface IssuedCredential extends Disposable {
  /** The secret itself: goes to the harness and nowhere else. */
  readonly secret: string;
}

/** Issues and knows the credentials of this host's running executions. */
export interface Credentials {
  /** A credential for the execution of `start`; disposing it ends it. RESOURCE_EXHAUSTED when too many are out. */
  issue(start: Start): IssuedCredential;
  /** The execution that a secret is good for; throws UNAUTHENTICATED for any other. */
  holderOf(secret: string): Start;
}

const SECRET_BYTES = 32;
/** Credentials that are out at once. */
export const CREDENTIALS_MAX = 65_536;

export function createCredentials(options: { readonly random: Random; readonly digest: Digest }): Credentials {
  const holders = new Map<string, Start>();
  return {
    issue: (start) => {
      if (holders.size >= CREDENTIALS_MAX) {
        throw new HoldfastError("resource_exhausted", `host: ${CREDENTIALS_MAX} executions have credentials already; retry later`);
      }
      const secret = base64Encode(options.random.bytes(SECRET_BYTES), "url");
      const key = options.digest.sha256Hex(secret);
      holders.set(key, start);
      return { secret, [Symbol.dispose]: () => void holders.delete(key) };
    },
    holderOf: (secret) => {
      const start = holders.get(options.digest.sha256Hex(secret));
      if (start === undefined) throw new HoldfastError("unauthenticated", "credential: it is good for no execution that runs here");
      return start;
    },
  };
}
