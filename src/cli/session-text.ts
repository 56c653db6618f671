/** Sessions as a person reads them: one in a list, one alone. Pure. */

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ComputeState, DeletionState, ExecState, type Session } from "../client/index.ts";
import { columnLines } from "./columns.ts";
import { plainLine } from "./plain.ts";

const COLUMNS = ["SESSION", "STATE", "SEQ", "CREATED", "HARNESS", "NAME"] as const;

/** Sessions under a heading. */
export function sessionTable(sessions: readonly Session[], bold: (text: string) => string): readonly string[] {
  const rows = sessions.map((session) => [
    plainLine(session.metadata?.uid ?? ""),
    stateOf(session),
    String(session.lastSeq),
    timeOf(session.metadata?.createTime),
    plainLine(session.harness),
    plainLine(session.metadata?.name ?? ""),
  ]);
  return columnLines(COLUMNS, rows, bold);
}

/** One session, a fact on each line. */
export function sessionLines(session: Session): readonly string[] {
  const { metadata } = session;
  const facts: readonly (readonly [string, string])[] = [
    ["session", metadata?.uid ?? ""],
    ["name", metadata?.name ?? ""],
    ["project", metadata?.project ?? ""],
    ["state", stateOf(session)],
    ["last seq", String(session.lastSeq)],
    ["harness", session.harness],
    ["model", session.model],
    ["compute", computeOf(session)],
    ["created", timeOf(metadata?.createTime)],
    ["updated", timeOf(metadata?.updateTime)],
    ["forked from", session.parentUid === "" ? "" : `${session.parentUid} at ${session.forkSeq}`],
    ["identity", identityText(session.identity)],
    ["waits for", session.pendingApproval === undefined ? "" : `approval of ${session.pendingApproval.toolCallId}`],
    ...Object.entries(session.labels).map(([key, value]) => ["label", `${key}=${value}`] as const),
    ...Object.entries(session.annotations).map(([key, value]) => ["annotation", `${key}=${value}`] as const),
  ];
  return facts.filter(([, value]) => value !== "").map(([name, value]) => `${name.padEnd(12)}${plainLine(value)}`);
}

function identityText(identity: Session["identity"]): string {
  if (identity === undefined) return "";
  const { principal, issuer, subject } = identity;
  return `${principal}${issuer === "" ? "" : `  by ${issuer}`}${subject === "" || subject === principal ? "" : `  as ${subject}`}`;
}

/** The state in one word. */
export function stateOf(session: Pick<Session, "execState" | "deletionState">): string {
  if (session.deletionState !== DeletionState.DELETION_ACTIVE && session.deletionState !== DeletionState.DELETION_STATE_UNSPECIFIED) {
    return "deleted";
  }
  switch (session.execState) {
    case ExecState.EXEC_PENDING:
      return "pending";
    case ExecState.EXEC_RUNNING:
      return "running";
    case ExecState.EXEC_AWAITING:
      return "awaiting";
    case ExecState.EXEC_COMPLETED:
      return "completed";
    case ExecState.EXEC_FAILED:
      return "failed";
    case ExecState.EXEC_CANCELED:
      return "cancelled";
    default:
      return "unknown";
  }
}

/** What has been recorded last: a host that was killed records nothing more, so only a turn that runs shows that compute is there. */
function computeOf({ computeState, compute, execState }: Session): string {
  const words: Readonly<Record<number, string>> = {
    [ComputeState.COMPUTE_LIVE]: "live",
    [ComputeState.COMPUTE_WARM]: "warm",
    [ComputeState.COMPUTE_COLD]: "cold",
    [ComputeState.COMPUTE_TERMINATED]: "terminated",
  };
  const word = words[computeState] ?? "";
  const text = compute === undefined || compute.runtime === "" ? word : `${word} on ${compute.runtime}`.trim();
  return computeState === ComputeState.COMPUTE_LIVE && execState !== ExecState.EXEC_RUNNING ? `${text} (last known)` : text;
}

/** The time to the second, in UTC. */
export function timeOf(time: Timestamp | undefined): string {
  if (time === undefined) return "";
  return `${new Date(timestampMs(time)).toISOString().slice(0, 19)}Z`;
}
