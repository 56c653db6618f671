/** `holdfast chat` from its flags to its end. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { invalidArgument } from "../../base/errors.ts";
import { createClient, type Client } from "../../client/index.ts";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import type { Server } from "../connect.ts";
import type { ExitCode } from "../exit.ts";
import type { CommandContext } from "../perform.ts";
import { Chat, type ChatEnd, type ChatOptions } from "./chat-driver.ts";
import { PipedSurface } from "./piped-surface.ts";
import { StateFolder } from "./state-folder.ts";
import type { Surface } from "./surface.ts";
import { TerminalSurface } from "./terminal-surface.ts";
import { LOCAL_TOOLS, localTool, Workspace } from "./tools/index.ts";

/** The flags of chat. */
export interface ChatFlags {
  readonly server?: string;
  readonly environment?: string;
  readonly model?: string;
  readonly host?: string;
  readonly mode?: string;
  readonly session?: string;
  readonly continue?: boolean;
  readonly tools: boolean;
  readonly allow?: readonly string[];
}

/** Of what a project says about itself for agents, as much as is given along. */
const PROJECT_CONTEXT_BYTES_MAX = 32 * 1024;

/** Chats with a server until the person leaves. */
export async function runChat(context: CommandContext, server: Server, flags: ChatFlags): Promise<ExitCode> {
  const folder = process.cwd();
  const state = new StateFolder(folder, process.env);
  const session = sessionOf(flags, state);
  const { isPiped, surface } = surfaceOf(context, state);
  await using client = createClient({ transport: server.connect() });
  const chat = new Chat({ ...(await optionsOf(context, client, folder, flags)), state, surface, isPiped });
  const end = await chat.run(session);
  if (end.kind === "failed") throw end.error;
  sayHowToComeBack(context, server, end);
  // Whoever sends lines learns by the exit code what a person has seen.
  return isPiped && end.hasFailed ? 1 : 0;
}

function sessionOf({ session, continue: goesOn }: ChatFlags, state: StateFolder): string | undefined {
  if (goesOn !== true) return session;
  const { last } = state;
  if (last === undefined) throw invalidArgument("--continue", "there was no chat in this folder yet; leave it out to begin one");
  return last.session;
}

function surfaceOf({ screen }: CommandContext, state: StateFolder): { readonly isPiped: boolean; readonly surface: Surface } {
  const { stdin, stdout } = process;
  if (stdin.isTTY && stdout.isTTY) return { isPiped: false, surface: new TerminalSurface(stdin, stdout, state, systemClock) };
  const output = {
    isTerminal: stdout.isTTY,
    stdout: (text: string) => screen.write(text),
    stderr: (text: string) => void process.stderr.write(text),
  };
  return { isPiped: true, surface: new PipedSurface(stdin, output) };
}

async function optionsOf(
  { signal }: CommandContext,
  client: Client,
  folder: string,
  flags: ChatFlags,
): Promise<Omit<ChatOptions, "state" | "surface" | "isPiped">> {
  const { environment = "", model, host: hostId, mode, tools, allow = [] } = flags;
  const unknown = allow.find((name) => localTool(name) === undefined);
  if (unknown !== undefined) throw invalidArgument("--allow", `must be one of ${LOCAL_TOOLS.map(({ name }) => name).join(", ")}`);
  return {
    client,
    world: { workspace: new Workspace(folder), clock: systemClock, environment: process.env },
    ports: { clock: systemClock, random: cryptoRandom },
    tools: tools ? LOCAL_TOOLS : [],
    allow,
    mode,
    start: { environmentId: environment, model, hostId, projectContext: tools ? await projectContext(folder) : [] },
    signal,
  };
}

/** What the folder's AGENTS.md says; nothing where there is none. */
async function projectContext(folder: string): Promise<readonly string[]> {
  try {
    const bytes = await readFile(join(folder, "AGENTS.md"));
    return [bytes.subarray(0, PROJECT_CONTEXT_BYTES_MAX).toString("utf8").toWellFormed()];
  } catch {
    return [];
  }
}

function sayHowToComeBack(
  { screen, stop }: CommandContext,
  { embedded, serverFlag }: Server,
  end: Extract<ChatEnd, { readonly kind: "left" }>,
): void {
  stop.leave();
  if (end.session === undefined) return;
  const goesOn = !end.isTurn
    ? ""
    : embedded
      ? "the turn is interrupted, since its server was in this process; "
      : "the turn goes on without you; ";
  screen.note(`${goesOn}come back with: holdfast chat --continue${serverFlag}`);
}
