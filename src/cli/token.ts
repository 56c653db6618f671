/** The bearer token: from the environment or a file named there, never from an argument, which every process can read. */

import { readFileSync } from "node:fs";
import { HoldfastError, invalidArgument } from "../base/errors.ts";

/** The variables that hold a token, or the name of a file that does. */
export type TokenEnvironment = Readonly<Record<string, string | undefined>>;

/** The token in `variable` or in the file that `variable`_FILE names, without white space around it; undefined when there is none. */
export function tokenOf(
  environment: TokenEnvironment,
  variable: "HOLDFAST_TOKEN" | "HOLDFAST_OPERATOR_TOKEN" = "HOLDFAST_TOKEN",
): string | undefined {
  const fileVariable = `${variable}_FILE`;
  const { [variable]: direct, [fileVariable]: path } = environment;
  if (direct !== undefined && direct !== "") return headerSafe(direct.trim(), variable);
  if (path === undefined || path === "") return undefined;
  try {
    return headerSafe(readFileSync(path, "utf8").trim(), fileVariable);
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    throw invalidArgument(fileVariable, "must name a file that can be read", { cause: error });
  }
}

function headerSafe(token: string, variable: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw invalidArgument(variable, "must hold a token of visible ASCII characters without white space");
}
