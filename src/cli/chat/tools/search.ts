/** `search`: a text in files. */

import { countArg, failure, reasonOf, textArg, type LocalTool } from "./local-tool.ts";
import { readText } from "./text-file.ts";
import { walk } from "./walk.ts";
import { isGuarded, type Place } from "./workspace.ts";

const MATCHES_MAX = 500;
const FILES_MAX = 20_000;
const FILE_BYTES_MAX = 1024 * 1024;
const LINE_CHARS_MAX = 300;

export const SEARCH: LocalTool = {
  name: "search",
  description:
    "Finds the lines of text files under the current folder that contain a text, as path:line: text. Files of secrets, of version control and " +
    `of installed packages are passed over, and those larger than 1 MiB; at most ${MATCHES_MAX} lines.`,
  parameters: {
    type: "object",
    properties: {
      text: { type: "string", minLength: 1, description: "What the lines contain; no pattern." },
      path: { type: "string", description: "Where; the current folder when it is left out." },
      ignore_case: { type: "boolean", description: "Whether small and capital letters are the same." },
      limit: { type: "integer", minimum: 1, maximum: MATCHES_MAX, description: "How many lines at most; 100 when it is left out." },
    },
    required: ["text"],
    additionalProperties: false,
  },
  timeoutMs: 3_600_000,
  onlyLooks: true,
  prepare: async (args, { workspace }) => {
    try {
      const text = textArg(args, "text");
      const place = await workspace.place(textArg(args, "path", "."));
      const limit = countArg(args, "limit", 100, MATCHES_MAX);
      const ignoreCase = args["ignore_case"] === true;
      return {
        summary: `search ${JSON.stringify(text)} in ${place.name}`,
        details: `search ${JSON.stringify(text)} in ${place.name}`,
        consent: place.isGuarded ? "ask-always" : "none",
        run: async ({ signal }) => {
          try {
            return await found({ text, place, limit, ignoreCase, signal });
          } catch (error) {
            return failure(error);
          }
        },
      };
    } catch (error) {
      return { refused: reasonOf(error) };
    }
  },
};

interface Search {
  readonly text: string;
  readonly place: Place;
  readonly limit: number;
  readonly ignoreCase: boolean;
  readonly signal: AbortSignal;
}

async function found({ text, place, limit, ignoreCase, signal }: Search) {
  const folded = (line: string): string => (ignoreCase ? line.toLowerCase() : line);
  const wanted = folded(text);
  const matches: string[] = [];
  let files = 0;
  for await (const { path, name } of filesUnder(place, signal)) {
    if (++files > FILES_MAX)
      return { success: true, result: [...matches, `[only the first ${FILES_MAX} files were looked at]`].join("\n"), truncated: true };
    const content = await readText(path, FILE_BYTES_MAX).catch(() => "");
    if (!folded(content).includes(wanted)) continue;
    for (const [index, line] of content.split("\n").entries()) {
      if (!folded(line).includes(wanted)) continue;
      if (matches.length === limit)
        return { success: true, result: [...matches, `[there are more than ${limit}]`].join("\n"), truncated: true };
      matches.push(`${name}:${index + 1}: ${line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX).toWellFormed()}…` : line}`);
    }
  }
  return { success: true, result: matches.length === 0 ? "[no line has it]" : matches.join("\n") };
}

async function* filesUnder(place: Place, signal: AbortSignal): AsyncGenerator<Pick<Place, "path" | "name">, void, undefined> {
  try {
    for await (const entry of walk(place, 64, signal)) if (entry.kind === "file" && !isGuarded(entry.name)) yield entry;
  } catch (error) {
    const isFile = error instanceof Error && "code" in error && error.code === "ENOTDIR";
    if (!isFile) throw error;
    yield place;
  }
}
