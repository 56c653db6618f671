/**
 * Who may make a gRPC call: decided when its metadata are there, before a byte of its message is read.
 *
 * Invariants:
 * - A caller that is refused has cost its metadata and nothing more.
 * - Callers without a token keep a bounded number of calls open; the oldest of these ends for the newest, so that an
 *   orchestrator's question for the health of the server is answered whatever others hold open.
 */

import type { Metadata } from "@grpc/grpc-js";
import { HoldfastError } from "../../base/errors.ts";
import type { Caller } from "../../spi/index.ts";
import type { Authenticate } from "../contract.ts";
import type { GatewayLimits } from "../limits.ts";

/** Health and reflection answer callers without a token: orchestrators have none, and the schema is published with the source. */
const PUBLIC_PATH = /^\/grpc\.(health|reflection)\./;

/** Harnesses that call their host have a credential of their execution instead of a client's token. */
const HARNESS_PATH = "/holdfast.v1.HarnessHost/";

function refuseHarness(): never {
  throw new HoldfastError("unauthenticated", "authorization: this door serves no harness");
}

const NOBODY: Caller = { identity: undefined };

/** Whether a method is served without a token. */
export function isPublic(path: string): boolean {
  return PUBLIC_PATH.test(path);
}

/** The door's keeper. */
export class Admission {
  readonly #authenticate: Authenticate;
  readonly #authenticateHarness: Authenticate;
  readonly #limits: GatewayLimits;
  readonly #callers = new WeakMap<Metadata, Caller>();
  /** How each open public call is ended, from the oldest to the newest. */
  readonly #publicCalls = new Set<(error: HoldfastError) => void>();

  constructor(authenticate: Authenticate, limits: GatewayLimits, authenticateHarness: Authenticate = refuseHarness) {
    this.#authenticate = authenticate;
    this.#authenticateHarness = authenticateHarness;
    this.#limits = limits;
  }

  /** Lets a call in. Throws UNAUTHENTICATED; RESOURCE_EXHAUSTED for too much metadata. */
  admit(path: string, metadata: Metadata): void {
    const { metadataBytesMax } = this.#limits;
    const bytes = metadataBytes(metadata);
    if (bytes > metadataBytesMax) {
      throw new HoldfastError("resource_exhausted", `metadata: takes ${bytes} bytes; at most ${metadataBytesMax} are allowed`, {
        field: "metadata",
      });
    }
    this.#callers.set(metadata, isPublic(path) ? NOBODY : this.#callerOf(path, metadata));
  }

  #callerOf(path: string, metadata: Metadata): Caller {
    const [authorization] = metadata.get("authorization");
    const authenticate = path.startsWith(HARNESS_PATH) ? this.#authenticateHarness : this.#authenticate;
    return authenticate(typeof authorization === "string" ? authorization : undefined);
  }

  /** Who makes the call with these metadata, which was let in. */
  caller(metadata: Metadata): Caller {
    const caller = this.#callers.get(metadata);
    if (caller === undefined) throw new HoldfastError("unauthenticated", "authorization: the call was not let in");
    return caller;
  }

  /** A public call is open until the returned function is called; `end` is how it is ended before. */
  openPublic(end: (error: HoldfastError) => void): () => void {
    this.#publicCalls.add(end);
    for (const oldest of this.#publicCalls) {
      if (this.#publicCalls.size <= this.#limits.publicCallsMax) break;
      this.#publicCalls.delete(oldest);
      oldest(new HoldfastError("resource_exhausted", "call: too many calls without a token are open; the oldest are ended"));
    }
    return () => void this.#publicCalls.delete(end);
  }
}

/** Keys and values, each pair with the 32 bytes that HTTP/2 counts for it. */
function metadataBytes(metadata: Metadata): number {
  let bytes = 0;
  for (const [key, values] of Object.entries(metadata.toHttp2Headers())) {
    for (const value of Array.isArray(values) ? values : [values]) bytes += key.length + String(value ?? "").length + 32;
  }
  return bytes;
}
