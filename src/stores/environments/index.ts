/** Environments that were made over the API, in memory and in a file of their own. */

export { createMemoryEnvironments } from "./memory.ts";
export { ENVIRONMENTS_FILE, openSqliteEnvironments, type SqliteEnvironmentsOptions } from "./sqlite.ts";
