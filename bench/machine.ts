/** What the figures were measured on. Facts of hardware and software only: no names, no addresses, no paths. */

import { closeSync, fdatasyncSync, openSync, statfsSync, writeSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { quantile } from "./statistics.ts";

/** The machine and the software. */
export interface MachineFacts {
  readonly node: string;
  readonly sqlite: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly platform: string;
  /** Of the folder that the journals are in. */
  readonly fileSystem: string;
  /** Appending 4 KiB and fdatasync, in microseconds. */
  readonly fdatasyncUs: { readonly p50: number; readonly p99: number };
  /** The load of the last minute when the run began: above a few tenths, others were busy here. */
  readonly loadAverage: number;
}

const PROBE_BYTES = 4096;
const PROBE_WRITES = 500;

/** The facts; `folder` is one of those that the journals will be in. */
export function machineFacts(folder: string): MachineFacts {
  return {
    node: process.version,
    sqlite: sqliteVersion(),
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${release()} ${process.arch}`,
    fileSystem: fileSystemOf(folder),
    fdatasyncUs: probeFdatasync(folder),
    loadAverage: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

function sqliteVersion(): string {
  const database = new DatabaseSync(":memory:");
  try {
    const row = database.prepare("SELECT sqlite_version() AS version").get();
    return String(row?.["version"]);
  } finally {
    database.close();
  }
}

/** The kinds that matter here; on tmpfs an fdatasync costs nothing, and the durable figures mean nothing. */
const FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0xef53: "ext4",
  0x5846_5342: "xfs",
  0x9123_683e: "btrfs",
  0x2fc1_2fc1: "zfs",
  0x794c_7630: "overlayfs",
  0x0102_1994: "tmpfs",
};

function fileSystemOf(folder: string): string {
  const { type } = statfsSync(folder);
  return FILE_SYSTEMS[type] ?? `type ${type.toString(16)}`;
}

/** How long an append of 4 KiB and its fdatasync take in `folder`. */
export function probeFdatasync(folder: string): MachineFacts["fdatasyncUs"] {
  const file = openSync(join(folder, "fdatasync-probe"), "w");
  const block = Buffer.alloc(PROBE_BYTES, 1);
  const times: number[] = [];
  try {
    for (let write = 0; write < PROBE_WRITES; write++) {
      const startMs = performance.now();
      writeSync(file, block);
      fdatasyncSync(file);
      times.push((performance.now() - startMs) * 1000);
    }
  } finally {
    closeSync(file);
  }
  return { p50: Math.round(quantile(times, 0.5)), p99: Math.round(quantile(times, 0.99)) };
}
