/** The commands of a chat that change or read the session's family. */

import type { Client } from "../../client/index.ts";
import { treeLines } from "../tree-text.ts";
import { turnEnds } from "./past-turns.ts";
import type { ServerCommand } from "./printed.ts";

/** What a command did. */
export type CommandResult =
  | { readonly kind: "lines"; readonly lines: readonly string[] }
  | { readonly kind: "problem"; readonly problem: string }
  /** The chat goes on in this session. */
  | { readonly kind: "switch"; readonly session: string; readonly note: string };

/** Runs a command. Rejects with what the server says. */
export function runServerCommand(client: Client, session: string, command: ServerCommand, signal: AbortSignal): Promise<CommandResult> {
  switch (command.name) {
    case "fork":
      return fork(client, session, command.count, signal);
    case "rewind":
      return rewind(client, session, command.turns, signal);
    case "tree":
      return tree(client, session, signal);
  }
}

async function fork(client: Client, session: string, count: number, signal: AbortSignal): Promise<CommandResult> {
  const end = (await turnEnds(client, session, signal)).at(-1);
  if (end === undefined) return { kind: "problem", problem: "no turn is over yet, so there is nothing to fork" };
  const children = await client.sessions.fork(session, { atSeq: end, count, signal });
  const lines = children.map(({ metadata }) => `${metadata?.uid ?? ""}  forked at ${end}`);
  return { kind: "lines", lines: [...lines, "holdfast chat --session UID goes on in one"] };
}

async function rewind(client: Client, session: string, turns: number, signal: AbortSignal): Promise<CommandResult> {
  const ends = await turnEnds(client, session, signal);
  const end = ends.at(-1 - turns);
  if (end === undefined) {
    const most = Math.max(0, ends.length - 1);
    return { kind: "problem", problem: `/rewind: the session has ${ends.length} turns that are over; it goes ${most} back at most` };
  }
  const [child] = await client.sessions.fork(session, { atSeq: end, count: 1, signal });
  const uid = child?.metadata?.uid ?? "";
  return { kind: "switch", session: uid, note: `back to the end of turn ${ends.length - turns}; the chat goes on in a child` };
}

async function tree(client: Client, session: string, signal: AbortSignal): Promise<CommandResult> {
  const family = await client.journal.lineage(session, { rowsMax: 200, signal });
  const lines = treeLines(family.rows, session).map(({ text, isAsked }) => (isAsked ? `${text}  (here)` : text));
  return { kind: "lines", lines: family.truncated ? [...lines, "… there are more: holdfast tree UID --limit N"] : lines };
}
