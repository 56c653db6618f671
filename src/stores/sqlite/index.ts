/** The journal in one SQLite file, through Node's own `node:sqlite`. */

export { openSqliteStore, type SqliteStoreOptions } from "./open.ts";
