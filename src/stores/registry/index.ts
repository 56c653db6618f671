/** Registrations of harnesses, in memory and in a file of their own. */

export { createMemoryRegistrations } from "./memory.ts";
export { REGISTRY_FILE } from "./file.ts";
export { openSqliteRegistrations, type SqliteRegistrationsOptions } from "./sqlite.ts";
