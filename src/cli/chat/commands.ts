/** What a person may type beside messages. Pure. */

import type { PermissionRule } from "../../client/index.ts";
import { columnLines } from "../columns.ts";
import type { ServerCommand } from "./printed.ts";
import type { LocalTool } from "./tools/index.ts";

/** A line that begins with a slash. */
export type Command =
  | { readonly kind: "server"; readonly command: ServerCommand }
  | { readonly kind: "help" | "tools" | "usage" | "quit" }
  /** All of the result of a call: the last one, or the one so many before it. */
  | { readonly kind: "show"; readonly back: number }
  | { readonly kind: "mode"; readonly mode: string | undefined }
  | { readonly kind: "wrong"; readonly message: string };

const HELP: readonly (readonly [string, string])[] = [
  ["/help", "this"],
  ["/tools", "the tools that the agent may use here, and what is asked first"],
  ["/show [N]", "the whole result of the last call, or of the one N before it"],
  ["/usage", "tokens of the last turn and of all since the chat began"],
  ["/mode [NAME]", "the mode of the next turns: react or ooda_re_act"],
  ["/fork [N]", "N children (1) of the session as it is after its last turn; the chat stays here"],
  ["/rewind N", "goes N turns back: a child that ends there, in which the chat goes on; this session stays as it is"],
  ["/tree", "the family of the session"],
  ["/quit", "leaves; holdfast chat --continue comes back"],
  ["Ctrl-C", "cancels the turn; once more leaves"],
  ["Alt-Enter, \\ Enter", "another line"],
];

/** The command in a line, or undefined for a message. Two slashes begin a message that begins with one. */
export function commandIn(line: string): Command | undefined {
  const match = /^\/([a-z]+)(?:\s+(.*))?$/s.exec(line.trim());
  if (match === null) return line.startsWith("/") && !line.startsWith("//") ? wrong(line) : undefined;
  const [, name = "", rest = ""] = match;
  const argument = rest.trim();
  switch (name) {
    case "help":
    case "tools":
    case "usage":
    case "quit":
      return argument === "" ? { kind: name } : { kind: "wrong", message: `/${name} takes nothing after it` };
    case "exit":
      return { kind: "quit" };
    case "tree":
      return { kind: "server", command: { name } };
    case "mode":
      return { kind: "mode", mode: argument === "" ? undefined : argument };
    case "show":
      return counted(argument, 0, 0, 19, (back) => ({ kind: "show", back }), "/show: N must be a whole number from 0 to 19");
    case "fork":
      return counted(
        argument,
        1,
        1,
        128,
        (count) => ({ kind: "server", command: { name, count } }),
        "/fork: N must be a whole number from 1 to 128",
      );
    case "rewind":
      return counted(
        argument,
        undefined,
        1,
        10_000,
        (turns) => ({ kind: "server", command: { name, turns } }),
        "/rewind N: how many turns back, from 1",
      );
    default:
      return wrong(line);
  }
}

/** The message in a line that is no command. */
export function messageIn(line: string): string {
  return line.startsWith("//") ? line.slice(1) : line;
}

function wrong(line: string): Command {
  const name = /^\S{1,32}/.exec(line.trim())?.[0] ?? "/";
  return { kind: "wrong", message: `there is no ${name}; /help has what there is, and // begins a message with a slash` };
}

function counted(
  argument: string,
  byDefault: number | undefined,
  min: number,
  max: number,
  command: (count: number) => Command,
  message: string,
): Command {
  const count = argument === "" ? byDefault : Number(argument);
  const isRight = count !== undefined && /^\d*$/.test(argument) && count >= min && count <= max;
  return isRight ? command(count) : { kind: "wrong", message };
}

/** What `/help` prints. */
export function helpLines(): readonly string[] {
  return columnLines(
    ["command", ""],
    HELP.map((row) => [...row]),
    (text) => text,
  ).slice(1);
}

/** What `/tools` prints. */
export function toolLines(
  tools: readonly LocalTool[],
  rules: readonly PermissionRule[],
  isAlways: (tool: string) => boolean,
): readonly string[] {
  const mine = tools.map(({ name, onlyLooks }) => [
    name,
    onlyLooks ? "runs at once" : isAlways(name) ? "allowed in this session" : "asks first",
  ]);
  const theirs = rules.map(({ toolPattern, policy, category, reason }) => [
    toolPattern === "" ? "*" : toolPattern,
    category ?? "",
    policy.replaceAll("_", " "),
    reason ?? "",
  ]);
  const lines = mine.length === 0 ? ["no tools of this folder (--no-tools)"] : columnLines(["here", ""], mine, (text) => text);
  return theirs.length === 0 ? lines : [...lines, "", ...columnLines(["the server's rules", "", "", ""], theirs, (text) => text)];
}
