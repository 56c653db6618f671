/** What is told of a call that was running when the chat was killed. It is never run again by itself. */

import type { ChangeMark, ToolOutcome } from "./local-tool.ts";
import { readText } from "./text-file.ts";
import type { Workspace } from "./workspace.ts";
import { hashOf } from "./write.ts";

/** The outcome of a call that began and of which no result is known. */
export async function recovered(tool: string, mark: ChangeMark | undefined, workspace: Workspace): Promise<ToolOutcome> {
  if (mark === undefined) return unknown(tool);
  const now = await currentHash(mark.path, workspace);
  if (now === mark.after) return { success: true, result: `wrote ${mark.path}; the client was killed right after it` };
  if (now === mark.before)
    return { success: false, result: `${mark.path} was not written: the client was killed before it; ask again if it is still wanted` };
  return unknown(tool);
}

function unknown(tool: string): ToolOutcome {
  return {
    success: false,
    result: `unknown outcome: the client was killed while \`${tool}\` ran; it may have taken effect, in part or whole. Look before you do it again.`,
  };
}

/** The hash of what is in a file now; undefined where there is none. */
async function currentHash(path: string, workspace: Workspace): Promise<string | undefined> {
  try {
    return hashOf(await readText((await workspace.place(path)).path));
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isMissing ? undefined : "unreadable";
  }
}
