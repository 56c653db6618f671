/** What a line with wrong usage most likely meant. Pure. */

/** Words that other programs have for our commands. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  sessions: "list",
  ls: "list",
  ps: "list",
  show: "get",
  describe: "get",
  run: "exec",
  start: "serve",
  server: "serve",
  logs: "tail",
  rm: "delete",
  stop: "cancel",
  harnesses: "harness list",
};

/** A remedy for an error of usage, if there is one that is likely; `path` is the command's name with those above it. */
export function usageHint(path: string, message: string): string | undefined {
  if (path === "holdfast exec" && message.startsWith("too many arguments"))
    return 'an input goes with --input: holdfast exec --input "hello"';
  const unknown = /^unknown command '([^']*)'/.exec(message)?.[1];
  if (path !== "holdfast" || unknown === undefined || !Object.hasOwn(OTHER_WORDS, unknown)) return undefined;
  return `did you mean: holdfast ${OTHER_WORDS[unknown]}`;
}
