/** The operator's port of a server, which commands about harnesses speak to. It is another port than that of sessions, with another token. */

import type { Transport } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { HoldfastError } from "../base/errors.ts";
import type { Command } from "commander";
import type { ExitCode } from "./exit.ts";
import { EMBEDDED } from "./choice.ts";
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
      `the operator's port: http://host:port, https://host:port or host:port; or HOLDFAST_OPERATOR (default: the port after HOLDFAST_SERVER's, else ${OPERATOR_ADDRESS})`,
    )
    .option("--json", json);
}

/** Runs `body` with a transport to the operator's port, and closes it afterwards. */
export async function withOperator(flags: OperatorFlags, body: (transport: Transport) => Promise<ExitCode>): Promise<ExitCode> {
  const { address, hint } = chooseOperator(flags.operator, process.env);
  await using transport = createNodeTransport({ address, token: tokenOf(process.env, "HOLDFAST_OPERATOR_TOKEN") });
  try {
    return await body(transport);
  } catch (error) {
    throw hinted(error, address, hint);
  }
}

/** Where to look for the operator's port, and what to say where nobody answers there. */
export interface OperatorChoice {
  readonly address: string;
  readonly hint: string;
}

const BESIDE = "a server opens it beside its own; else name it with --operator";

/**
 * `flag`, else HOLDFAST_OPERATOR, else the port after that of HOLDFAST_SERVER where that is on this machine, else the port after a server's
 * own default. The operator's port of another machine is opened there to itself unless its server was told otherwise, so nobody guesses it.
 */
export function chooseOperator(flag: string | undefined, environment: Readonly<Record<string, string | undefined>>): OperatorChoice {
  const variable = environment["HOLDFAST_OPERATOR"]?.trim() ?? "";
  const named = flag ?? (variable === "" ? undefined : variable);
  if (named !== undefined) return { address: named, hint: BESIDE };
  const server = environment["HOLDFAST_SERVER"]?.trim() ?? "";
  if (server === "" || server === EMBEDDED) return { address: OPERATOR_ADDRESS, hint: BESIDE };
  const port = portBeside(server);
  if (port !== undefined) return { address: `http://127.0.0.1:${port}`, hint: BESIDE };
  return { address: OPERATOR_ADDRESS, hint: "it does not follow from HOLDFAST_SERVER; name it with --operator or HOLDFAST_OPERATOR" };
}

const PORT_MAX = 65_535;

/** The port after a server's on this machine; undefined where the address has none, or is of another machine. */
function portBeside(server: string): number | undefined {
  if (server.startsWith("unix:")) return undefined;
  const url = URL.parse(server.includes("://") ? server : `http://${server}`);
  if (url === null || !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)) return undefined;
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return port === PORT_MAX ? undefined : port + 1;
}

function hinted(error: unknown, address: string, hint: string): unknown {
  if (!(error instanceof HoldfastError)) return error;
  switch (error.code) {
    case "unavailable":
      return new HintedError(error, `is the operator's port at ${address}? ${hint}`);
    case "unauthenticated":
      return new HintedError(error, "the operator's token comes from HOLDFAST_OPERATOR_TOKEN or HOLDFAST_OPERATOR_TOKEN_FILE");
    case "unimplemented":
      return new HintedError(error, `${address} is a port for sessions; the operator's is another one: name it with --operator`);
    default:
      return error;
  }
}
