/** Teams: sessions that other sessions spawned. */

export { DEPTH_ANNOTATION, depthOf, SPAWNED_BY_ANNOTATION, spawnerOf, TASK_ANNOTATION, taskOf, workerAnnotations } from "./annotations.ts";
export { SPAWN_TOOL, spawnCallOf, workerUid } from "./spawn-call.ts";
export { createTasksService, PROMPT_BYTES_MAX, type TasksServiceOptions } from "./tasks.ts";
export { SPAWN_LIMITS, type SpawnLimits } from "./spawn-limits.ts";
export { dropUnbegunTasks, type UnbegunTasksOptions } from "./unbegun.ts";
export { createSpawnTool, type SpawnOptions, type SpawnTool } from "./spawn-tool.ts";
