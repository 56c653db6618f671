/** Tokens for one execution: minted while it runs, and never after. */

import type { TokenIssuer, TokenMinter, TokenRequest } from "../spi/index.ts";
import type { Gate } from "./gate.ts";

/** Mints for the execution of `holder` while `gate` is open; undefined on a host without a key. */
export function minterOf(tokens: TokenIssuer | undefined, holder: Omit<TokenRequest, "audience">, gate: Gate): TokenMinter | undefined {
  if (tokens === undefined) return undefined;
  return async (audience, options) => {
    gate.pass();
    return (await tokens.mint({ ...holder, audience }, options)).token;
  };
}
