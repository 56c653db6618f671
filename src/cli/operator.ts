/** The operator's port of a server, which commands about harnesses speak to. It is another port than that of sessions, with another token. */

import type { Transport } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { HoldfastError } from "../base/errors.ts";
import type { Command } from "commander";
import type { ExitCode } from "./exit.ts";
import { HintedError } from "./perform.ts";
import { tokenOf } from "./token.ts";

/** Flags that every command about harnesses has. */
export interface OperatorFlags {
  readonly operator?: string;
  readonly json?: boolean;
}

/** Where a server has its operator's port when nobody says anything. */
export const OPERATOR_ADDRESS = "http://127.0.0.1:8081";

/** `--operator` and `--json`. */
export function operatorOptions(command: Command, json: string): Command {
  return command
    .option(
      "--operator <address>",
      `the operator's port: http://host:port, https://host:port or host:port; or HOLDFAST_OPERATOR (default: ${OPERATOR_ADDRESS})`,
    )
    .option("--json", json);
}

/** Runs `body` with a transport to the operator's port, and closes it afterwards. */
export async function withOperator(flags: OperatorFlags, body: (transport: Transport) => Promise<ExitCode>): Promise<ExitCode> {
  const variable = process.env["HOLDFAST_OPERATOR"]?.trim() ?? "";
  const address = flags.operator ?? (variable === "" ? OPERATOR_ADDRESS : variable);
  await using transport = createNodeTransport({ address, token: tokenOf(process.env, "HOLDFAST_OPERATOR_TOKEN") });
  try {
    return await body(transport);
  } catch (error) {
    throw hinted(error, address);
  }
}

function hinted(error: unknown, address: string): unknown {
  if (!(error instanceof HoldfastError)) return error;
  switch (error.code) {
    case "unavailable":
      return new HintedError(error, `is the operator's port at ${address}? a server opens it beside its own; else name it with --operator`);
    case "unauthenticated":
      return new HintedError(error, "the operator's token comes from HOLDFAST_OPERATOR_TOKEN or HOLDFAST_OPERATOR_TOKEN_FILE");
    case "unimplemented":
      return new HintedError(error, `${address} is a port for sessions; the operator's is another one: name it with --operator`);
    default:
      return error;
  }
}
