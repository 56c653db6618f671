/** The server that a command speaks to, and a client of it. Whichever that is, the code path is one: a gRPC client of a server. */

import { createClient, type Client, type Transport } from "../client/index.ts";
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
  return withServer(context, flags, async ({ connect, embedded, serverFlag }) => {
    await using client = createClient({ transport: connect() });
    return await body({ client, embedded, serverFlag });
  });
}

/** The chosen server, and how to open a transport to it; who opens one closes it. */
export interface Server extends Omit<Connection, "client"> {
  readonly connect: () => Transport;
}

/** Runs `body` with the chosen server, and closes that afterwards if it is the command's own. */
export async function withServer(
  context: CommandContext,
  flags: { readonly server?: string | undefined },
  body: (server: Server) => Promise<ExitCode>,
): Promise<ExitCode> {
  const server = await connectTo(context, flags.server);
  const { address, token, embedded, serverFlag } = server;
  try {
    return await body({ connect: () => createNodeTransport({ address, token }), embedded, serverFlag });
  } catch (error) {
    throw hinted(error, server);
  } finally {
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
