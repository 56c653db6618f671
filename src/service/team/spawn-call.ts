/**
 * The calls that spawn, as a journal tells them: which TOOL_CALL is one, and which session it is about.
 *
 * Invariant: a worker's uid is a function of its spawner and of the call's idempotency key, so whoever drives the call again, and whoever
 * reads the journal, comes to the same session (I3).
 */

import type { SessionUid } from "../../base/ids.ts";
import type { Digest } from "../../base/ports.ts";
import type { Event, ToolCall } from "../../gen/agentsessions/v1/common_pb.ts";

/** The name of the tool that spawns. */
export const SPAWN_TOOL = "spawn";

/** The call of an event that is a TOOL_CALL of `spawn`; undefined for every other event. */
export function spawnCallOf({ body }: Pick<Event, "body">): ToolCall | undefined {
  return body.case === "tool" && body.value.tool === SPAWN_TOOL ? body.value : undefined;
}

/** Keeps these digests apart from all others. */
const DOMAIN = "holdfast.dev/worker";
/** The variant of RFC 9562, in the two high bits of the ninth byte. */
const VARIANTS = "89ab";

/** The uid of the session that a spawn call under this key is about: a UUID of version 8, whose bits are those of a SHA-256. */
export function workerUid(parent: SessionUid, idempotencyKey: string, digest: Digest): SessionUid {
  const hex = digest.sha256Hex(JSON.stringify([DOMAIN, parent, idempotencyKey]));
  const variant = VARIANTS[Number.parseInt(hex[16] ?? "0", 16) % 4] ?? "8";
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}` as SessionUid;
}
