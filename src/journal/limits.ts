/** The journal's limits. Each is documented in `docs/limits.md` and tested at its edge. */

/** The longest encoded record, in bytes. Larger payloads belong into a BlobStore. */
export const RECORD_BYTES_MAX = 4 * 1024 * 1024;
/** The most events of one append. */
export const APPEND_EVENTS_MAX = 1024;
/** The most records of a page when the caller names no number. */
export const PAGE_RECORDS_DEFAULT = 256;
/** The size at which a page ends, in bytes of its records. */
export const PAGE_BYTES_SOFT_MAX = 1024 * 1024;
/** The most children of one fork. */
export const FORK_CHILDREN_MAX = 128;
/** The most appends that may wait for a commit; further ones are refused with RESOURCE_EXHAUSTED. */
export const APPENDS_QUEUED_MAX = 16_384;
/** The size at which a transaction takes no further append, in bytes of its records; what waits goes into the next one. */
export const BATCH_BYTES_SOFT_MAX = 16 * 1024 * 1024;
/** The most records that one transaction removes of a reclaimed session; a larger session goes in slices. */
export const RECLAIM_RECORDS_MAX = 1024;
/** The size at which a slice of a reclaimed session ends, in bytes of its records. */
export const RECLAIM_BYTES_SOFT_MAX = 16 * 1024 * 1024;
/** The size at which a transaction takes no further append, in records that it adds or removes. */
export const BATCH_RECORDS_SOFT_MAX = 4096;
