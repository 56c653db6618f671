/** A client of the server that a command speaks to. Whichever that is, the code path is one: a gRPC client of a server. */

import { createClient, type Client } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { HoldfastError } from "../base/errors.ts";
import { dataFolder, startEmbedded } from "./embedded.ts";
import type { ExitCode } from "./exit.ts";
import { HintedError, type CommandContext } from "./perform.ts";
import { chooseServer } from "./choice.ts";
import { probe } from "./probe.ts";
import type { Stop } from "./stop.ts";
import { tokenOf } from "./token.ts";

/** A client and what it is a client of. */
export interface Connection {
  readonly client: Client;
  /** Whether the server lives in this process and ends with the command. */
  readonly embedded: boolean;
  /** What a later command needs to reach the same server; "" when it finds it by itself. */
  readonly serverFlag: string;
}

interface ChosenServer extends AsyncDisposable {
  readonly address: string;
  readonly token: string | undefined;
  readonly embedded: boolean;
  readonly serverFlag: string;
}

/** Runs `body` with a client of the chosen server, and closes both afterwards. */
export async function withClient(
  context: CommandContext,
  flags: { readonly server?: string | undefined },
  body: (connection: Connection) => Promise<ExitCode>,
): Promise<ExitCode> {
  const server = await connectTo(context, flags.server);
  const client = createClient({ transport: createNodeTransport({ address: server.address, token: server.token }) });
  try {
    return await body({ client, embedded: server.embedded, serverFlag: server.serverFlag });
  } catch (error) {
    throw hinted(error, server);
  } finally {
    await client[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  }
}

async function connectTo(context: CommandContext, flag: string | undefined): Promise<ChosenServer> {
  const token = tokenOf(process.env);
  const choice = await chooseServer(flag, process.env["HOLDFAST_SERVER"], probe);
  if (choice.kind === "remote") return remote(choice.address, token, choice.serverFlag);
  if (choice.note !== "") context.screen.note(choice.note);
  context.screen.note(`using an embedded server over ${dataFolder(process.env)}`);
  const embedded = await startEmbedded(process.env, () => graceMsOf(context.stop));
  return {
    address: embedded.address,
    token: undefined,
    embedded: true,
    serverFlag: "",
    [Symbol.asyncDispose]: () => embedded[Symbol.asyncDispose](),
  };
}

function remote(address: string, token: string | undefined, serverFlag: string): ChosenServer {
  return { address, token, embedded: false, serverFlag, [Symbol.asyncDispose]: () => Promise.resolve() };
}

/** A turn whose output nobody reads any more is finished; one that was interrupted is left at once. */
function graceMsOf(stop: Stop): number {
  return stop.leaving ? 0 : 60_000;
}

function hinted(error: unknown, server: ChosenServer): unknown {
  if (!(error instanceof HoldfastError) || error instanceof HintedError || server.embedded) return error;
  if (error.code === "unavailable")
    return new HintedError(error, `is a server running at ${server.address}? start one with: holdfast serve`);
  if (error.code === "unauthenticated") return new HintedError(error, "the token comes from HOLDFAST_TOKEN or HOLDFAST_TOKEN_FILE");
  return error;
}
