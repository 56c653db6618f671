/** `write` and `edit`: the text of a file, replaced as a whole. */

import { mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { nodeDigest } from "../../../node/index.ts";
import { diffLines, folded, type ShownLine } from "../../line-diff.ts";
import { failure, reasonOf, Refusal, textArg, type LocalTool, type PreparedCall } from "./local-tool.ts";
import { readText } from "./text-file.ts";
import type { Place } from "./workspace.ts";

const ASK_TIMEOUT_MS = 3_600_000;
const CONTENT_CHARS_MAX = 1024 * 1024;

const PATH = { type: "string", description: "The file, relative to the folder." };

export const WRITE: LocalTool = {
  name: "write",
  description:
    "Writes a text file of the current folder, whole: it is made, or what was in it is replaced. The person at the terminal is asked first.",
  parameters: {
    type: "object",
    properties: { path: PATH, content: { type: "string", description: "All that is in the file afterwards." } },
    required: ["path", "content"],
    additionalProperties: false,
  },
  timeoutMs: ASK_TIMEOUT_MS,
  onlyLooks: false,
  prepare: async (args, { workspace }) => {
    try {
      const place = await workspace.place(textArg(args, "path"));
      const content = textArg(args, "content");
      const before = await contentOf(place);
      return change({ tool: "write", place, before, after: content, what: before === undefined ? "new" : "replaced" });
    } catch (error) {
      return { refused: reasonOf(error) };
    }
  },
};

export const EDIT: LocalTool = {
  name: "edit",
  description:
    "Replaces a piece of a text file of the current folder. The piece must be in it word for word, and once unless `all` is true. The person at " +
    "the terminal is asked first.",
  parameters: {
    type: "object",
    properties: {
      path: PATH,
      old: { type: "string", minLength: 1, description: "The piece, with its line breaks and indentation." },
      new: { type: "string", description: "What stands there afterwards." },
      all: { type: "boolean", description: "Whether every such piece is replaced." },
    },
    required: ["path", "old", "new"],
    additionalProperties: false,
  },
  timeoutMs: ASK_TIMEOUT_MS,
  onlyLooks: false,
  prepare: async (args, { workspace }) => {
    try {
      const place = await workspace.place(textArg(args, "path"));
      const [old, fresh] = [textArg(args, "old"), textArg(args, "new")];
      if (old === "") throw new Refusal("old: must not be empty");
      const before = await readText(place.path);
      const pieces = before.split(old);
      if (pieces.length === 1) throw new Refusal("old: the file does not have this piece, word for word");
      if (pieces.length > 2 && args["all"] !== true)
        throw new Refusal(`old: the file has it ${pieces.length - 1} times; give more of it, or all`);
      const what = pieces.length === 2 ? "1 place" : `${pieces.length - 1} places`;
      return change({ tool: "edit", place, before, after: pieces.join(fresh), what });
    } catch (error) {
      return { refused: reasonOf(error) };
    }
  },
};

interface Change {
  /** The tool's name: what is allowed for the session is allowed by it. */
  readonly tool: string;
  readonly place: Place;
  readonly before: string | undefined;
  readonly after: string;
  readonly what: string;
}

function change({ tool, place, before, after, what }: Change): PreparedCall {
  if (after.length > CONTENT_CHARS_MAX) throw new Refusal(`content: must be at most ${CONTENT_CHARS_MAX} characters`);
  const bytes = Buffer.byteLength(after);
  const mark = { path: place.name, before: before === undefined ? undefined : hashOf(before), after: hashOf(after) };
  const details = folded(diffLines(linesOf(before ?? ""), linesOf(after)))
    .map(diffText)
    .join("\n");
  return {
    summary: `${tool} ${place.name} (${what}, ${bytes} bytes)`,
    details,
    hasDiff: details !== "",
    consent: place.isGuarded ? "ask-always" : "ask",
    mark,
    run: async () => {
      try {
        const now = await contentOf(place);
        // Between the question and the answer somebody may have written.
        if ((now === undefined ? undefined : hashOf(now)) !== mark.before)
          throw new Refusal("the file was changed meanwhile; read it again");
        await replace(place.path, after);
        return { success: true, result: `wrote ${place.name} (${what}, ${bytes} bytes)` };
      } catch (error) {
        return failure(error);
      }
    },
  };
}

function linesOf(text: string): readonly string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}

function diffText(line: ShownLine): string {
  switch (line.kind) {
    case "same":
      return `  ${line.text}`;
    case "removed":
      return `- ${line.text}`;
    case "added":
      return `+ ${line.text}`;
    case "folded":
      return `  … ${line.count} lines as they are`;
  }
}

/** The hash by which a file's text is known. */
export function hashOf(text: string): string {
  return nodeDigest.sha256Hex(text);
}

/** The text of a file; undefined where there is none. */
async function contentOf(place: Place): Promise<string | undefined> {
  try {
    return await readText(place.path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Puts a new file in the place of the old one in one step: whoever reads sees one or the other. */
async function replace(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const mode = await stat(path).then(
    (facts) => facts.mode & 0o777,
    () => 0o666,
  );
  const fresh = join(dirname(path), `.holdfast-chat-${hashOf(path + content).slice(0, 12)}.tmp`);
  try {
    await writeFile(fresh, content, { mode, flush: true });
    await rename(fresh, path);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
