/** An export's limits. Each is documented in `docs/limits.md` and tested at its edge. */

import { RECORD_BYTES_MAX } from "../journal/index.ts";

/** The version of the format. */
export const ARCHIVE_VERSION = 1;
/** The most sessions of one export. */
export const ARCHIVE_SESSIONS_MAX = 10_000;
/** The longest frame of the binary form: a record and what stands around it. */
export const FRAME_BYTES_MAX = RECORD_BYTES_MAX + 64 * 1024;
/** The longest line of the JSON form. A byte of a record takes six characters at most, as an escape. */
export const LINE_BYTES_MAX = 8 * RECORD_BYTES_MAX;
/**
 * The most lists and objects inside one another in a JSON text. A record is read to 100 messages deep, of which each takes two of them at
 * most, and few more stand around it.
 */
export const JSON_DEPTH_MAX = 256;
/** The most records by which an import continues a session that is in use; they are taken in one step. */
export const CONTINUED_RECORDS_MAX = 1024;
/** The most bytes of these. */
export const CONTINUED_BYTES_MAX = 16 * 1024 * 1024;
