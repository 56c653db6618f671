/** Sessions, events and checks that the cases share. */

import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Fence, HostId, Seq, SessionUid } from "../../base/index.ts";
import { contentHash, decodeLogRecord } from "../../canon/index.ts";
import { EventKind, EventSchema, Lifecycle_Kind, type Event } from "../../gen/agentsessions/v1/common_pb.ts";
import { EMPTY_PROJECTION, project } from "../../journal/index.ts";
import type {
  AppendOutcome,
  AppendRequest,
  ForkOutcome,
  ForkRequest,
  JournalStore,
  Projection,
  ReadRequest,
  SessionRow,
  SessionSeed,
  StoredRecord,
} from "../../journal/index.ts";
import { testDigest } from "../ports.ts";

export const HOST_A = "host-a" as HostId;
export const HOST_B = "host-b" as HostId;

export function uid(name: string): SessionUid {
  return name as SessionUid;
}

export function seq(value: number): Seq {
  return value as Seq;
}

export function fence(value: number): Fence {
  return value as Fence;
}

/** A seed with the given fields. */
export function seedOf(name: string, fields: Partial<SessionSeed> = {}): SessionSeed {
  return {
    uid: uid(name),
    project: "",
    name: "",
    harness: "echo",
    model: "echo",
    identity: undefined,
    origin: undefined,
    labels: {},
    annotations: {},
    createTimeMs: 1_000,
    ...fields,
  };
}

const TURN = "turn-1";

function eventOf(kind: EventKind, body: Event["body"], executionId = TURN): Event {
  const event = create(EventSchema, { executionId, ts: timestampFromMs(1_700_000_000_000), schemaVersion: 1, kind });
  event.body = body;
  return event;
}

/** An OUTPUT with a text. */
export function output(text: string): Event {
  const message = create(EventSchema, {
    body: { case: "message", value: { role: "assistant", parts: [{ part: { case: "text", value: { text } } }] } },
  });
  return eventOf(EventKind.EVENT_OUTPUT, message.body);
}

export function executionStart(executionId = TURN): Event {
  const start = create(EventSchema, { body: { case: "executionStart", value: { inputCount: 0n, harness: "echo" } } });
  return eventOf(EventKind.EVENT_EXECUTION_START, start.body, executionId);
}

export function end(state = "COMPLETED"): Event {
  return eventOf(EventKind.EVENT_END, create(EventSchema, { body: { case: "end", value: { state } } }).body);
}

export function approvalRequest(toolCallId: string): Event {
  const request = create(EventSchema, { body: { case: "approval", value: { toolCallId } } });
  return eventOf(EventKind.EVENT_APPROVAL_REQUEST, request.body);
}

export function toolResult(id: string): Event {
  return eventOf(EventKind.EVENT_TOOL_RESULT, create(EventSchema, { body: { case: "result", value: { id } } }).body);
}

export function lifecycle(kind: Lifecycle_Kind): Event {
  return eventOf(EventKind.EVENT_LIFECYCLE, create(EventSchema, { body: { case: "lifecycle", value: { kind } } }).body);
}

export const forkMarker = (): Event => lifecycle(Lifecycle_Kind.LIFECYCLE_FORK);
export const deletion = (): Event => lifecycle(Lifecycle_Kind.LIFECYCLE_DELETE);

/** An append of events as the writer of the newest fence. */
export async function append(store: JournalStore, session: string, ...events: Event[]): Promise<Appended> {
  const row = await rowOf(store, session);
  return appended(await store.append(appendAs(session, row.fence, events)));
}

/** An append request under a fence. */
export function appendAs(session: string, under: Fence, events: readonly Event[], more: Partial<AppendRequest> = {}): AppendRequest {
  return { session: uid(session), writer: { kind: "hold", fence: under }, events: events.map((event) => ({ event })), ...more };
}

/** A request that takes the session's lease. */
export function claimAs(session: string, holder: HostId, more: { leaseMs?: number; takeOver?: boolean; keep?: Fence } = {}): AppendRequest {
  return { session: uid(session), writer: { kind: "claim", holder, leaseMs: 1_000, ...more }, events: [] };
}

export type Appended = Extract<AppendOutcome, { kind: "appended" }>;

/** The outcome of an append that must have happened. */
export function appended(outcome: AppendOutcome): Appended {
  if (outcome.kind !== "appended") assert.fail(`the append was refused as ${outcome.kind}`);
  return outcome;
}

/** Creates a session that must not exist. */
export async function created(store: JournalStore, name: string, fields: Partial<SessionSeed> = {}): Promise<SessionRow> {
  const outcome = await store.create(seedOf(name, fields));
  if (outcome.kind !== "created") assert.fail(`the session was refused as ${outcome.kind}`);
  return outcome.row;
}

/** The row of a session that must exist. */
export async function rowOf(store: JournalStore, session: string): Promise<SessionRow> {
  const row = await store.get(uid(session));
  assert.ok(row, `session ${session} exists`);
  return row;
}

/** Reads a range, page by page. */
export async function pagesOf(store: JournalStore, request: ReadRequest): Promise<StoredRecord[][]> {
  const pages: StoredRecord[][] = [];
  for await (const page of store.read(request)) pages.push([...page]);
  return pages;
}

/** Every record of a session. */
export async function recordsOf(store: JournalStore, session: string): Promise<StoredRecord[]> {
  return (await pagesOf(store, { session: uid(session) })).flat();
}

/** The text of a session's OUTPUT events; other records show as their kind's number. */
export function textsOf(records: readonly StoredRecord[]): string[] {
  return records.map(({ bytes, kind }) => {
    const body = decodeLogRecord(bytes).event?.body;
    const part = body?.case === "message" ? body.value.parts[0]?.part : undefined;
    return part?.case === "text" ? part.value.text : `#${kind}`;
  });
}

/** Checks that records are a whole chain from the first: seqs, links, hashes, and columns that say what the bytes say. */
export function requireChain(records: readonly StoredRecord[]): void {
  let prevHash = "";
  records.forEach((record, index) => {
    const decoded = decodeLogRecord(record.bytes);
    assert.equal(record.seq, index + 1, "seqs have no gap");
    assert.equal(Number(decoded.seq), record.seq);
    assert.equal(decoded.prevHash, prevHash, `record ${record.seq} links to the one before it`);
    assert.equal(decoded.contentHash, record.contentHash);
    assert.equal(Number(decoded.fence), record.fence);
    assert.ok(decoded.event, "a record has an event");
    assert.equal(decoded.event.kind, record.kind);
    assert.equal(contentHash({ event: decoded.event, prevHash, seq: record.seq }, testDigest), record.contentHash);
    prevHash = record.contentHash;
  });
}

/** The projection of records that are a whole chain. */
export function projectionOf(records: readonly StoredRecord[]): Projection {
  return records.reduce((before, { seq: at, contentHash: hash, bytes }) => {
    const { event } = decodeLogRecord(bytes);
    assert.ok(event);
    return project(before, at, hash, event);
  }, EMPTY_PROJECTION);
}

/** A fork of a session at a seq into children with the given names as uids. */
export async function forkRequest(store: JournalStore, parent: string, atSeq: number, ...children: string[]): Promise<ForkRequest> {
  const prefix = (await recordsOf(store, parent)).slice(0, atSeq);
  return {
    parent: uid(parent),
    atSeq: seq(atSeq),
    projection: projectionOf(prefix),
    children: children.map((child) => ({ seed: seedOf(child), marker: { event: forkMarker() } })),
  };
}

/** The rows of a fork that must have happened. */
export function forked(outcome: ForkOutcome): readonly SessionRow[] {
  if (outcome.kind !== "forked") assert.fail(`the fork was refused as ${outcome.kind}`);
  return outcome.rows;
}

/** Checks that a call rejects with a HoldfastError of this code. */
export async function rejectsWith(call: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(call, (error: unknown) => {
    assert.ok(error instanceof Error && "code" in error, "a fault is a HoldfastError");
    assert.equal(error.code, code, error.message);
    return true;
  });
}
