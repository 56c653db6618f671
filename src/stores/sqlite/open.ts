/** Opening the journal of a data folder. */

import { invalidArgument, SILENT_LOG } from "../../base/index.ts";
import type { Clock, Digest, Log } from "../../base/index.ts";
import type { JournalStore } from "../../journal/index.ts";
import { openWriter, type WriterOptions } from "./connection.ts";
import { toStoreError } from "./faults.ts";
import { holdFolder } from "./folder.ts";
import { KnownFile } from "./known-file.ts";
import { JournalReader } from "./reader.ts";
import { SqliteStore } from "./store.ts";
import { WriteGate } from "./write-gate.ts";
import { inlineWriter, workerWriter, type WriterLink } from "./writer-link.ts";

/** How a SQLite journal is opened. */
export interface SqliteStoreOptions {
  /** The data folder; made where it is missing. One process at a time can have it open. */
  readonly folder: string;
  readonly clock: Clock;
  readonly digest: Digest;
  /** Default: nothing is logged. */
  readonly log?: Log | undefined;
  /**
   * Where the file is written. `inline` (default): in this thread, the fastest for a lone program. `worker`: in a thread of its
   * own, so that a server's event loop does not wait for the disk.
   */
  readonly writer?: "inline" | "worker" | undefined;
  /** The size in bytes that the journal's file must not exceed. Default: as large as the disk allows. */
  readonly fileBytesMax?: number | undefined;
}

/**
 * Opens the journal in `folder` and checks it. Throws UNAVAILABLE while another process has the folder, FAILED_PRECONDITION
 * where the folder or its file cannot be used (no folder, read-only, another database, a newer schema), DATA_LOSS where the
 * file is damaged.
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<JournalStore> {
  const { clock, digest, log = SILENT_LOG, fileBytesMax } = options;
  if (fileBytesMax !== undefined && !(fileBytesMax > 0)) throw invalidArgument("file_bytes_max", "must be more than 0");
  const held = holdFolder(options.folder);
  try {
    const link = await openLink({ path: held.journalPath, fileBytesMax }, options.writer ?? "inline");
    try {
      const reader = new JournalReader(held.journalPath);
      return new SqliteStore({ held, reader, gate: new WriteGate(link, new KnownFile(held.journalPath), log), clock, digest, log });
    } catch (error) {
      await link.close();
      throw error;
    }
  } catch (error) {
    held[Symbol.dispose]();
    throw toStoreError(error);
  }
}

async function openLink(options: WriterOptions, writer: "inline" | "worker"): Promise<WriterLink> {
  if (writer === "inline") return inlineWriter(options);
  // A fault at opening is told best in this thread, where SQLite's own error can go with it.
  openWriter(options).close();
  return workerWriter(options);
}
