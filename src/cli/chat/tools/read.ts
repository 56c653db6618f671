/** `read`: the text of a file. */

import { countArg, failure, reasonOf, textArg, type LocalTool } from "./local-tool.ts";
import { readText } from "./text-file.ts";

const LINES_MAX = 2_000;
const CHARS_MAX = 65_536;

export const READ: LocalTool = {
  name: "read",
  description:
    `Reads a text file of the current folder. At most ${LINES_MAX} lines and ${CHARS_MAX} characters come at once; ` +
    "the last line of a part says how to go on.",
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "The file, relative to the folder." },
      from_line: { type: "integer", minimum: 1, description: "The first line; 1 when it is left out." },
      lines: { type: "integer", minimum: 1, maximum: LINES_MAX, description: "How many lines." },
    },
    required: ["path"],
    additionalProperties: false,
  },
  timeoutMs: 3_600_000,
  onlyLooks: true,
  prepare: async (args, { workspace }) => {
    try {
      const place = await workspace.place(textArg(args, "path"));
      const fromLine = countArg(args, "from_line", 1, Number.MAX_SAFE_INTEGER);
      const lines = countArg(args, "lines", LINES_MAX, LINES_MAX);
      return {
        summary: `read ${place.name}`,
        details: `read ${place.name}, lines ${fromLine} to ${fromLine + lines - 1}`,
        consent: place.isGuarded ? "ask-always" : "none",
        run: async () => {
          try {
            return partOf(await readText(place.path), fromLine, lines);
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

function partOf(text: string, fromLine: number, count: number) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const part: string[] = [];
  let chars = 0;
  for (const line of lines.slice(fromLine - 1, fromLine - 1 + count)) {
    if (part.length > 0 && chars + line.length > CHARS_MAX) break;
    part.push(line.length > CHARS_MAX ? `${line.slice(0, CHARS_MAX).toWellFormed()}…` : line);
    chars += line.length + 1;
  }
  const next = fromLine + part.length;
  const isAll = fromLine === 1 && next > lines.length;
  if (isAll) return { success: true, result: part.join("\n") };
  const rest = next > lines.length ? "the last" : `go on with from_line ${next}`;
  return {
    success: true,
    result: `${part.join("\n")}\n[lines ${fromLine} to ${next - 1} of ${lines.length}; ${rest}]`,
    truncated: next <= lines.length,
  };
}
