/** Teams: sessions that other sessions spawned. */

export { DEPTH_ANNOTATION, depthOf, SPAWNED_BY_ANNOTATION, spawnerOf, TASK_ANNOTATION, taskOf, workerAnnotations } from "./annotations.ts";
export { SPAWN_TOOL, spawnCallOf, workerUid } from "./spawn-call.ts";
