/**
 * What a webhook sends: its body, its id, its signature, as Standard Webhooks has them. Pure but for hashing.
 *
 * Invariant: an event has the same id and body whenever it is sent, by whichever process; its receiver can drop what it knows.
 */

import { createHash, createHmac } from "node:crypto";
import type { ApprovalNews } from "../service/index.ts";

/** One event, ready to be sent. */
export interface WebhookMessage {
  readonly id: string;
  /** When what it tells of was recorded. */
  readonly timeMs: number;
  readonly project: string;
  readonly body: string;
}

/** The largest arguments that are sent, in characters of JSON. */
export const ARGS_CHARS_MAX = 64 * 1024;

/** The event of a request or a decision. Arguments and reasons go along only where `includeArgs` is set. */
export function webhookMessage(news: ApprovalNews, { includeArgs }: { readonly includeArgs: boolean }): WebhookMessage {
  const { row, kind, seq, timeMs, call, decision } = news;
  const { uid, name, project, harness } = row.seed;
  const data = {
    project,
    session: uid,
    session_name: name,
    parent_uid: row.parent?.uid ?? "",
    harness,
    execution_id: news.executionId,
    tool_call_id: news.toolCallId,
    request_seq: news.requestSeq,
    tool: call?.tool ?? "",
    ...(decision === undefined ? {} : decisionOf(seq, decision)),
    ...(includeArgs ? { ...argsOf(call?.args ?? {}), reason: news.reason } : {}),
  };
  const body = JSON.stringify({ type: `approval.${kind}`, timestamp: new Date(timeMs).toISOString(), data });
  return { id: eventId(uid, seq), timeMs, project, body };
}

function decisionOf(seq: number, { approved, actor }: NonNullable<ApprovalNews["decision"]>) {
  const { principal = "", issuer = "", subject = "" } = actor ?? {};
  return { decision_seq: seq, approved, by: { principal, issuer, subject } };
}

function argsOf(args: object): { readonly args: object } | { readonly args_omitted: true } {
  return JSON.stringify(args).length <= ARGS_CHARS_MAX ? { args } : { args_omitted: true };
}

function eventId(session: string, seq: number): string {
  return `evt_${createHash("sha256").update(`approval ${session} ${seq}`).digest("hex").slice(0, 32)}`;
}

/** The headers of one sending: the signature is over id, time of sending and body. */
export function webhookHeaders({ id, body }: WebhookMessage, key: Uint8Array, nowMs: number): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "content-type": "application/json",
    "user-agent": "holdfast",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${signature}`,
  };
}
