/**
 * Transaction tokens: signed JWTs with which a harness acts for its session's principal at named services, for minutes.
 *
 * Invariants:
 * - A token names the session, the execution and the harness that it was minted for, and can be told from any other token by its type.
 * - Every request is told to the audit log, whether it was granted or refused. The token itself is told to nobody but its caller.
 * - The key never leaves the signer; what is published is the public half.
 */

import { base64Encode } from "@bufbuild/protobuf/wire";
import { HoldfastError, invalidArgument, toHoldfastError } from "../base/errors.ts";
import { newUuid } from "../base/ids.ts";
import type { Clock, Digest, Log, Random, Signer } from "../base/ports.ts";
import type { MintedToken, TokenIssuer, TokenRequest } from "../spi/index.ts";

/** What an issuer is made of. */
export interface TokenIssuerOptions {
  readonly signer: Signer;
  /** The `iss` claim: a URL or a name by which verifiers know this host. */
  readonly issuer: string;
  /** How long a token lives; 1 second to 1 hour. Default 5 minutes. */
  readonly lifetimeMs?: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly digest: Digest;
  /** Where every request is told. */
  readonly log: Log;
}

/** An issuer, and the key that its tokens are verified with. */
export interface PublishedIssuer extends TokenIssuer {
  /** The JSON Web Key Set that is published under `/.well-known/jwks.json`. */
  readonly keys: JsonWebKeySet;
}

/** Public keys as RFC 7517 has them. */
export interface JsonWebKeySet {
  readonly keys: readonly {
    readonly kty: "OKP";
    readonly crv: "Ed25519";
    readonly x: string;
    readonly kid: string;
    readonly alg: "EdDSA";
    readonly use: "sig";
  }[];
}

const LIFETIME_MS_DEFAULT = 5 * 60_000;
const LIFETIME_MS_MAX = 60 * 60_000;
/** Services that one token may be for. */
export const AUDIENCE_MAX = 16;
/** Characters of one of them. */
export const AUDIENCE_CHARS_MAX = 256;
/** The end of an Ed25519 SubjectPublicKeyInfo is the key itself. */
const KEY_BYTES = 32;

/** Creates an issuer over one Ed25519 key. Throws INVALID_ARGUMENT for an empty issuer and for a lifetime out of range. */
export function createTokenIssuer(options: TokenIssuerOptions): PublishedIssuer {
  const { lifetimeMs = LIFETIME_MS_DEFAULT, issuer } = options;
  if (issuer === "") throw invalidArgument("issuer", "must be a URL or a name");
  if (!Number.isSafeInteger(lifetimeMs) || lifetimeMs < 1_000 || lifetimeMs > LIFETIME_MS_MAX) {
    throw invalidArgument("lifetimeMs", `must be from 1000 to ${LIFETIME_MS_MAX}`);
  }
  const keys = keySetOf(options.signer, options.digest);
  return {
    keys,
    mint: async (request) => {
      try {
        const minted = await mint(options, keys.keys[0]?.kid ?? "", lifetimeMs, request);
        tell(options.log, request, { granted: true });
        return minted;
      } catch (error) {
        tell(options.log, request, { granted: false, code: toHoldfastError(error).code });
        throw error;
      }
    },
  };
}

async function mint(options: TokenIssuerOptions, kid: string, lifetimeMs: number, request: TokenRequest): Promise<MintedToken> {
  const audience = checkedAudience(request.audience);
  const { principal } = request;
  if (principal === undefined || principal.principal === "") {
    throw new HoldfastError("failed_precondition", "session: it has no principal to act for; create it with an identity");
  }
  const issuedUnix = Math.floor(options.clock.nowMs() / 1_000);
  const expiresUnix = issuedUnix + Math.floor(lifetimeMs / 1_000);
  const claims = {
    iss: options.issuer,
    sub: principal.subject === "" ? principal.principal : principal.subject,
    aud: audience.length === 1 ? audience[0] : audience,
    iat: issuedUnix,
    exp: expiresUnix,
    txn: newUuid(options),
    req_wl: request.harness,
    tctx: {
      session: request.sessionUid,
      execution: request.executionId,
      principal: principal.principal,
      ...(principal.issuer === "" ? {} : { principal_issuer: principal.issuer }),
    },
  };
  const signed = `${encoded({ typ: "txntoken+jwt", alg: "EdDSA", kid })}.${encoded(claims)}`;
  const signature = await options.signer.sign(new TextEncoder().encode(signed));
  return { token: `${signed}.${base64Encode(signature, "url")}`, expiresUnix };
}

function checkedAudience(audience: readonly string[]): readonly string[] {
  if (audience.length === 0) throw invalidArgument("audience", "must name at least one service");
  if (audience.length > AUDIENCE_MAX) {
    throw new HoldfastError("resource_exhausted", `audience: must name at most ${AUDIENCE_MAX} services`, { field: "audience" });
  }
  for (const [index, name] of audience.entries()) {
    // oxlint-disable-next-line no-control-regex -- control characters are exactly what a name must not hold.
    const isName = name !== "" && name.length <= AUDIENCE_CHARS_MAX && name.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(name);
    if (!isName) throw invalidArgument(`audience[${index}]`, `must be a name of 1 to ${AUDIENCE_CHARS_MAX} characters`);
  }
  return audience;
}

function keySetOf({ publicKey }: Signer, digest: Digest): JsonWebKeySet {
  const x = base64Encode(publicKey.subarray(publicKey.length - KEY_BYTES), "url");
  // The thumbprint of RFC 7638: the required members in their order, hashed.
  const thumbprint = digest.sha256Hex(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`);
  const bytes = Uint8Array.from({ length: 32 }, (_, index) => Number.parseInt(thumbprint.slice(2 * index, 2 * index + 2), 16));
  const kid = base64Encode(bytes, "url");
  return { keys: [{ kty: "OKP", crv: "Ed25519", x, kid, alg: "EdDSA", use: "sig" }] };
}

function encoded(value: object): string {
  return base64Encode(new TextEncoder().encode(JSON.stringify(value)), "url");
}

/** Names and times only. An audience is a name; one that is none is not repeated. */
function tell(log: Log, request: TokenRequest, answer: { readonly granted: boolean; readonly code?: string }): void {
  log.log(answer.granted ? "info" : "warn", answer.granted ? "audit: a token was minted" : "audit: a token was refused", {
    session: request.sessionUid,
    execution: request.executionId,
    harness: request.harness,
    audience: answer.granted ? request.audience.join(" ") : undefined,
    code: answer.code,
  });
}
