/** The table that a person reads and the JSON that a program reads. */

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Row, Target } from "./context.ts";
import type { MachineFacts } from "./machine.ts";

/** A whole run. */
export interface Report {
  /** When the run began, ISO 8601. */
  readonly startedAt: string;
  readonly quick: boolean;
  readonly machine: MachineFacts;
  /** The probe of the disk again after the last group: far from the first one, others used the disk meanwhile. */
  readonly fdatasyncUsAtEnd: MachineFacts["fdatasyncUs"];
  readonly rows: readonly Row[];
  readonly notMeasured: readonly string[];
}

/** What a reader must not conclude from the figures. */
export const NOT_MEASURED: readonly string[] = [
  "other hardware: take the ratios with you, not the figures",
  "a network between client and server: both are on this machine and share its cores",
  "real providers' latency and rate limits: the model answers at once",
  "PostgreSQL, or any store but SQLite",
  "many hosts, leases that are contended, takeover",
  "cold caches: files and code are warm; nothing is read after a reboot",
  "approvals, forks, tools that take time, and MCP servers",
  "journals that do not fit in memory, and large payloads",
  "REST and server-sent events, TLS, authentication",
  "many turns at once beyond 64; slow clients, but for those of the interactive door",
  "power loss and crashes: those are tests, not measurements",
];

/** Writes the report as JSON, making its folder where there is none. */
export function writeReport(file: string, report: Report): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);
}

/** The machine in one paragraph. */
export function machineText(machine: MachineFacts): string {
  const { p50, p99 } = machine.fdatasyncUs;
  return [
    `Node ${machine.node.replace(/^v/, "")}, SQLite ${machine.sqlite}, ${machine.platform}`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB; load ${machine.loadAverage} at the start`,
    `${machine.fileSystem}; 4 KiB + fdatasync ${p50} µs (p99 ${p99} µs)`,
  ].join("\n");
}

const HEADINGS = ["group", "figure", "median", "unit", "lowest – highest", "ratio", "CPU µs", "target", "met", "note"] as const;
/** The columns of numbers, which are set flush right. */
const NUMBERS = new Set<string>(["median", "ratio", "CPU µs"]);

/** Says that the figures are of a busy machine; undefined where they are not. */
export function moodText({ machine, fdatasyncUsAtEnd }: Pick<Report, "machine" | "fdatasyncUsAtEnd">): string | undefined {
  const { p50 } = machine.fdatasyncUs;
  const isBusy = machine.loadAverage > BUSY_LOAD || fdatasyncUsAtEnd.p50 > p50 * DISK_DRIFT || p50 > fdatasyncUsAtEnd.p50 * DISK_DRIFT;
  if (!isBusy) return undefined;
  return `This machine was busy with other things (load ${machine.loadAverage} at the start; fdatasync ${p50} µs, at the end ${fdatasyncUsAtEnd.p50} µs): trust the ratios and the processor times, not the rates.`;
}

const BUSY_LOAD = 0.5;
const DISK_DRIFT = 1.5;

/** A run as the section of a Markdown document. */
export function markdownText(report: Report): string {
  const { machine, rows } = report;
  const lines = [HEADINGS.map(String), HEADINGS.map((heading) => (NUMBERS.has(heading) ? "---:" : "---")), ...rows.map(cellsOf)];
  const table = lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  const mood = moodText(report);
  const facts = machineText(machine).replaceAll("\n", ". ");
  return [`${report.startedAt.slice(0, 10)}. ${facts}.`, ...(mood === undefined ? [] : [mood]), table].join("\n\n");
}

/** The rows as an aligned table. */
export function tableText(rows: readonly Row[]): string {
  const lines = [HEADINGS.map(String), ...rows.map(cellsOf)];
  const widths = HEADINGS.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const rule = widths.map((width) => "─".repeat(width)).join("  ");
  const [heading = "", ...body] = lines.map((line) => alignedLine(line, widths));
  return [heading, rule, ...body].join("\n");
}

function alignedLine(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => {
    return NUMBERS.has(HEADINGS[column]!) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!);
  });
  return padded.join("  ").trimEnd();
}

function cellsOf(row: Row): string[] {
  return [
    row.group,
    row.name,
    figureText(row.value),
    row.unit,
    row.spread === undefined ? "" : row.spread.map(figureText).join(" – "),
    row.ratio === undefined ? "" : row.ratio.toFixed(2),
    row.cpuUs === undefined ? "" : figureText(row.cpuUs),
    row.target === undefined ? "" : targetText(row.target),
    row.met === undefined ? "" : row.met ? "yes" : "NO",
    row.note ?? "",
  ];
}

function targetText({ of, bound, limit }: Target): string {
  const sign = bound === "at-least" ? "≥" : "≤";
  return of === "ratio" ? `ratio ${sign} ${limit.toFixed(2)}` : `${sign} ${figureText(limit)}`;
}

/** Three significant digits at least, thousands set apart. */
function figureText(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
