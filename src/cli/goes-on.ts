/** How a session goes on once a call that it waited for is decided, in lines for a person. Pure. */

import type { Session } from "../client/index.ts";
import { plainLine } from "./plain.ts";

/** Who spawned a worker ([agent.md](../../docs/agent.md)). A fork has it from its parent and is nobody's worker. */
const SPAWNED_BY = "holdfast.dev/spawned-by";
/** What a session was created as: `interactive` for a conversation ([agent-service.md](../../docs/agent-service.md)). */
const KIND = "holdfast.dev/kind";

/** The lines: what else waits, and who lets the session go on. `serverFlag` is what names the server in a command. */
export function goesOnLines({ metadata, pendingApproval, annotations, parentUid }: Session, serverFlag: string): readonly string[] {
  const uid = metadata?.uid ?? "";
  const spawner = parentUid === "" ? (annotations[SPAWNED_BY] ?? "") : "";
  const more = pendingApproval === undefined ? "" : plainLine(pendingApproval.toolCallId);
  const lines = more === "" ? [] : [`${more} waits for a decision too: holdfast approve ${uid} --call ${more}${serverFlag} (or deny)`];
  if (spawner !== "") {
    const resume = `holdfast resume ${plainLine(spawner)}${serverFlag}`;
    return [...lines, `it goes on by itself, for the session that spawned it; if that was interrupted: ${resume}`];
  }
  if (annotations[KIND] === "interactive") return [...lines, "it goes on by itself where its client is connected, or once that comes back"];
  return [...lines, `let it go on with: holdfast resume ${uid}${serverFlag}`];
}
