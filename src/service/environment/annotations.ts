/**
 * What sessions of environments are known by, tasks and interactive sessions among them: annotations of their creation, which never change and
 * which forks inherit. They grant nothing.
 */

import type { SessionSeed } from "../../journal/index.ts";

/** The id of the environment that a session was created in. */
export const ENVIRONMENT_ANNOTATION = "holdfast.dev/environment";

/** The id of the host of that environment that it was created for; absent for none. */
export const HOST_ANNOTATION = "holdfast.dev/host";

/** What a session was created as: `task` for a task, `interactive` for a conversation. */
export const KIND_ANNOTATION = "holdfast.dev/kind";

/** Whether a session was created as a task. */
export function isTask({ annotations }: Pick<SessionSeed, "annotations">): boolean {
  return annotations[KIND_ANNOTATION] === "task";
}
