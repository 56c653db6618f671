/** `list`: what is in a folder. */

import { lstat } from "node:fs/promises";
import { countArg, failure, reasonOf, textArg, type LocalTool } from "./local-tool.ts";
import { walk, type Entry } from "./walk.ts";

const ENTRIES_MAX = 1_000;
const DEPTH_MAX = 6;

export const LIST: LocalTool = {
  name: "list",
  description: `Lists files and folders of the current folder, folders with a slash, files with their size in bytes; at most ${ENTRIES_MAX}.`,
  parameters: {
    type: "object",
    properties: {
      path: { type: "string", description: "The folder; the current one when it is left out." },
      depth: { type: "integer", minimum: 1, maximum: DEPTH_MAX, description: "How many levels deep; 1 when it is left out." },
    },
    additionalProperties: false,
  },
  timeoutMs: 3_600_000,
  onlyLooks: true,
  prepare: async (args, { workspace }) => {
    try {
      const place = await workspace.place(textArg(args, "path", "."));
      const depth = countArg(args, "depth", 1, DEPTH_MAX);
      return {
        summary: `list ${place.name}`,
        details: `list ${place.name}, ${depth} deep`,
        consent: place.isGuarded ? "ask-always" : "none",
        run: async ({ signal }) => {
          try {
            const lines: string[] = [];
            for await (const entry of walk(place, depth, signal)) {
              if (lines.length === ENTRIES_MAX) {
                lines.push(`[there is more than ${ENTRIES_MAX}; list a folder of it]`);
                return { success: true, result: lines.join("\n"), truncated: true };
              }
              lines.push(await lineOf(entry));
            }
            return { success: true, result: lines.length === 0 ? "[empty]" : lines.join("\n") };
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

async function lineOf({ kind, path, name }: Entry): Promise<string> {
  switch (kind) {
    case "folder":
      return `${name}/`;
    case "link":
      return `${name} (a link)`;
    case "other":
      return `${name} (neither file nor folder)`;
    case "file": {
      const size = await lstat(path).then(
        (facts) => facts.size,
        () => undefined,
      );
      return size === undefined ? name : `${name} ${size}`;
    }
  }
}
