/**
 * What a session that was spawned is known by: the annotations of its creation, which never change.
 *
 * Invariants:
 * - A worker has all of them. They place it and grant nothing: whoever creates a session may annotate it, so what follows from a place
 *   in a tree is never a right.
 * - A fork inherits them, so a copy of a worker is as deep as the worker.
 */

import type { SessionUid } from "../../base/ids.ts";
import { SPAWNED_BY_ANNOTATION } from "../../controller/index.ts";
import type { SessionSeed } from "../../journal/index.ts";

export { SPAWNED_BY_ANNOTATION };

/** The uid of the session at the root of the tree of spawns: the one that nobody spawned. */
export const TASK_ANNOTATION = "holdfast.dev/task";

/** How far below that root a session is, as a decimal number: 1 for what the root itself spawned. */
export const DEPTH_ANNOTATION = "holdfast.dev/depth";

/** The annotations of a session that `parent` spawns. */
export function workerAnnotations(parent: SessionSeed): Readonly<Record<string, string>> {
  return {
    [SPAWNED_BY_ANNOTATION]: parent.uid,
    [TASK_ANNOTATION]: taskOf(parent),
    [DEPTH_ANNOTATION]: String(depthOf(parent) + 1),
  };
}

/** Who spawned a session; undefined for one that nobody did. */
export function spawnerOf({ annotations }: SessionSeed): SessionUid | undefined {
  const uid = annotations[SPAWNED_BY_ANNOTATION];
  return uid === undefined || uid === "" ? undefined : (uid as SessionUid);
}

/** The root of a session's tree of spawns: itself, where nobody spawned it. */
export function taskOf({ uid, annotations }: SessionSeed): SessionUid {
  const task = annotations[TASK_ANNOTATION];
  return task === undefined || task === "" ? uid : (task as SessionUid);
}

/** How many spawns lie between a session and the root of its tree; 0 for the root, and for what is no number. */
export function depthOf({ annotations }: SessionSeed): number {
  const text = annotations[DEPTH_ANNOTATION] ?? "";
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 0;
}
