/** Registrations of harnesses, in memory and in a file of their own. */

export { createMemoryRegistrations } from "./memory.ts";
export { openSqliteRegistrations, REGISTRY_FILE, type SqliteRegistrationsOptions } from "./sqlite.ts";
