/** Notes beside sessions, in memory and in a file of their own. */

export { createMemoryNotes } from "./memory.ts";
export { NOTES_FILE, openSqliteNotes, type SqliteNotesOptions } from "./sqlite.ts";
