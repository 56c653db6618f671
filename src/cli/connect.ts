/** The server that a command speaks to, and a client of it. Whichever that is, the code path is one: a gRPC client of a server. */

import { createClient, type Client, type Transport } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { isConnectionFault } from "../client/reconnect.ts";
import { HoldfastError } from "../base/errors.ts";
import { systemClock } from "../node/index.ts";
import { embeddingText, embedOrJoin } from "./embed-or-join.ts";
import { dataFolder, startEmbedded, type EmbeddedServer } from "./embedded.ts";
import type { ExitCode } from "./exit.ts";
import { HintedError, type CommandContext } from "./perform.ts";
import { chooseServer } from "./choice.ts";
import { DEFAULT_ADDRESS, probe } from "./probe.ts";
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
  return withServer(context, flags, clientBody(body));
}

/** The same for a command that only reads: where there is neither a server nor a data folder it throws NOT_FOUND and makes none. */
export async function withReader(
  context: CommandContext,
  flags: { readonly server?: string | undefined },
  body: (connection: Connection) => Promise<ExitCode>,
): Promise<ExitCode> {
  return withServer(context, flags, clientBody(body), { onlyReads: true });
}

function clientBody(body: (connection: Connection) => Promise<ExitCode>): (server: Server) => Promise<ExitCode> {
  return async ({ connect, embedded, serverFlag }) => {
    await using client = createClient({ transport: connect() });
    return await body({ client, embedded, serverFlag });
  };
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
  { onlyReads = false }: { readonly onlyReads?: boolean } = {},
): Promise<ExitCode> {
  const server = await connectTo(context, flags.server, onlyReads);
  const { address, token, embedded, serverFlag } = server;
  try {
    return await body({ connect: () => createNodeTransport({ address, token }), embedded, serverFlag });
  } catch (error) {
    throw hinted(error, server);
  } finally {
    await server[Symbol.asyncDispose]();
  }
}

async function connectTo(context: CommandContext, flag: string | undefined, onlyReads: boolean): Promise<ChosenServer> {
  const token = tokenOf(process.env);
  const choice = await chooseServer(flag, process.env["HOLDFAST_SERVER"], probe);
  if (choice.kind === "remote") return remote(choice.address, token, choice.serverFlag);
  const { screen, stop, signal } = context;
  const folder = dataFolder(process.env);
  const start = () => startEmbedded(process.env, () => graceMsOf(stop));
  const result = await embedOrJoin({ choice, folder, onlyReads, start, probe, clock: systemClock, signal });
  if (result.kind === "joined") return remote(DEFAULT_ADDRESS, token, "");
  // Who asked for it knows; who did not must be told where the data goes.
  if (choice.found === undefined) screen.note(embeddingText(choice, folder));
  else screen.hint(embeddingText(choice, folder));
  return embeddedAt(result.server);
}

function embeddedAt(embedded: EmbeddedServer): ChosenServer {
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
  // Where the server itself says that something is unavailable, it is there.
  if (isConnectionFault(error)) return new HintedError(error, `is a server running at ${server.address}? start one with: holdfast serve`);
  if (error.code === "unauthenticated") return new HintedError(error, "the token comes from HOLDFAST_TOKEN or HOLDFAST_TOKEN_FILE");
  return error;
}
