/** Acting for a session's principal: what a host asks of whoever signs tokens. */

import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ExecutionId, SessionUid } from "../base/ids.ts";
import type { CallOptions } from "./harness.ts";
import type { IdentityRef } from "./wire.ts";

/** Whom a token is for, and on whose behalf. */
export interface TokenRequest {
  readonly sessionUid: SessionUid;
  readonly executionId: ExecutionId;
  /** The harness that asks, by its name on this host. */
  readonly harness: string;
  readonly principal: IdentityRef | undefined;
  /** The services that may accept the token; at least one. */
  readonly audience: readonly string[];
}

/** A signed token. It is a secret while it lives, and is written nowhere. */
export interface MintedToken {
  readonly token: string;
  /** When it ends, in seconds since the Unix epoch. */
  readonly expiresUnix: number;
}

/** Mints tokens; a host without a key has none. */
export interface TokenIssuer {
  /**
   * A short-lived token with which a harness acts for the session's principal, at the named services only. INVALID_ARGUMENT for an
   * audience that is none; FAILED_PRECONDITION for a session without a principal.
   */
  mint(request: TokenRequest, options?: CallOptions): Promise<MintedToken>;
}

/**
 * When a token ends, in seconds since the Unix epoch, by its own `exp` claim; 0 for a token that does not say. It is for telling the
 * token's owner; a verifier reads a token by its signature.
 */
export function expiresUnixOf(token: string): number {
  try {
    const claims: unknown = JSON.parse(new TextDecoder().decode(base64Decode(token.split(".")[1] ?? "")));
    const exp = typeof claims === "object" && claims !== null && "exp" in claims ? claims.exp : 0;
    return typeof exp === "number" && Number.isSafeInteger(exp) ? exp : 0;
  } catch {
    return 0;
  }
}
