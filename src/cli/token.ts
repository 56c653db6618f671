/** The bearer token: from the environment or a file named there, never from an argument, which every process can read. */

import { readFileSync } from "node:fs";
import { HoldfastError, invalidArgument } from "../base/errors.ts";

/** The variables that hold a token, or the name of a file that does. */
export interface TokenEnvironment {
  readonly HOLDFAST_TOKEN?: string | undefined;
  readonly HOLDFAST_TOKEN_FILE?: string | undefined;
}

/** The token, without white space around it; undefined when there is none. */
export function tokenOf(environment: TokenEnvironment): string | undefined {
  const { HOLDFAST_TOKEN: direct, HOLDFAST_TOKEN_FILE: path } = environment;
  if (direct !== undefined && direct !== "") return headerSafe(direct.trim(), "HOLDFAST_TOKEN");
  if (path === undefined || path === "") return undefined;
  try {
    return headerSafe(readFileSync(path, "utf8").trim(), "HOLDFAST_TOKEN_FILE");
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    throw invalidArgument("HOLDFAST_TOKEN_FILE", "must name a file that can be read", { cause: error });
  }
}

function headerSafe(token: string, variable: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw invalidArgument(variable, "must hold a token of visible ASCII characters without white space");
}
