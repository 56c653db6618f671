/**
 * Which append a store must take and which it must refuse (I6), worked out from the appends before it: the newest fence, the lease by
 * the store's clock, the head, deletion. It shares no code with the stores.
 */

import type { HostId, SessionUid } from "../../base/index.ts";
import { Lifecycle_Kind } from "../../gen/agentsessions/v1/common_pb.ts";
import { DeletionState } from "../../gen/agentsessions/v1/session_pb.ts";
import type { AppendOutcome, AppendRequest, RenewRequest, SessionRow, Writer } from "../../journal/index.ts";

/** What is known of a session. */
interface Known {
  fence: number;
  lease: { readonly holder: HostId; readonly untilMs: number } | undefined;
  lastSeq: number;
  deleted: boolean;
}

/** What a store must answer. */
export interface DueAnswer {
  readonly kind: AppendOutcome["kind"];
  /** The fence of an append that must be taken. */
  readonly fence?: number | undefined;
}

/** The state of every session's writer, as its appends make it. */
export class AdmissionRules {
  readonly #known = new Map<SessionUid, Known>();
  readonly #gone = new Set<SessionUid>();

  /** A session was created or forked. */
  add(session: SessionUid, at: { readonly fence: number; readonly lastSeq: number }): void {
    this.#known.set(session, { ...at, lease: undefined, deleted: false });
  }

  has(session: SessionUid): boolean {
    return this.#known.has(session);
  }

  /** Whether the session was deleted, be its storage still there or not. */
  isDeleted(session: SessionUid): boolean {
    return this.#gone.has(session) || this.#known.get(session)?.deleted === true;
  }

  /** Nothing is left of a deleted session. */
  reclaimed(session: SessionUid): void {
    this.#known.delete(session);
    this.#gone.add(session);
  }

  /** Who holds the session's lease at `nowMs`. */
  holder(session: SessionUid, nowMs: number): HostId | undefined {
    const lease = this.#known.get(session)?.lease;
    return lease !== undefined && lease.untilMs > nowMs ? lease.holder : undefined;
  }

  fence(session: SessionUid): number | undefined {
    return this.#known.get(session)?.fence;
  }

  /** What the store must answer to `request` at `nowMs`. */
  due(request: AppendRequest, nowMs: number): DueAnswer {
    const known = this.#known.get(request.session);
    if (known === undefined) return { kind: "not-found" };
    if (known.deleted) return { kind: "deleted" };
    const { writer } = request;
    const holder = this.holder(request.session, nowMs);
    const takes = writer.kind === "claim" && holder !== undefined && holder !== writer.holder;
    if (takes && writer.takeOver !== true) return { kind: "held" };
    const kept = keptFence(writer, takes);
    if (kept !== undefined && kept !== known.fence) return { kind: "fenced" };
    if (request.expectedLastSeq !== undefined && request.expectedLastSeq !== known.lastSeq) return { kind: "conflict" };
    return { kind: "appended", fence: kept ?? known.fence + 1 };
  }

  /** An append was taken. */
  taken(request: AppendRequest, fence: number, nowMs: number): void {
    const known = this.#known.get(request.session);
    if (known === undefined) return;
    const { writer, events } = request;
    known.fence = fence;
    known.lastSeq += events.length;
    if (writer.kind === "claim") {
      known.lease = writer.leaseMs === 0 ? undefined : { holder: writer.holder, untilMs: nowMs + writer.leaseMs };
    }
    if (writer.kind === "release") known.lease = undefined;
    known.deleted = events.some(({ event: { body } }) => body.case === "lifecycle" && body.value.kind === Lifecycle_Kind.LIFECYCLE_DELETE);
    if (known.deleted) known.lease = undefined;
  }

  /** The sessions of a renewal that must be lost; the others' leases go on. */
  renewed({ holder, leaseMs, sessions }: RenewRequest, nowMs: number): SessionUid[] {
    const lost: SessionUid[] = [];
    for (const { session, fence } of sessions) {
      const known = this.#known.get(session);
      if (known?.fence !== fence || known.lease?.holder !== holder || known.deleted) lost.push(session);
      else known.lease = { holder, untilMs: nowMs + leaseMs };
    }
    return lost;
  }

  /** The store was opened again: what nobody had been told of may be there or not. */
  found(session: SessionUid, row: SessionRow | undefined): void {
    if (row === undefined) return void this.#known.delete(session);
    const deleted = row.projection.deletionState !== DeletionState.DELETION_ACTIVE;
    this.#known.set(session, { fence: row.fence, lease: undefined, lastSeq: row.projection.lastSeq, deleted });
  }

  /** The store was opened again and no process holds anything any more. */
  forgetLeases(): void {
    for (const known of this.#known.values()) known.lease = undefined;
  }
}

/** The fence that an append must go on under; undefined for one that mints. */
function keptFence(writer: Writer, takes: boolean): number | undefined {
  if (writer.kind !== "claim") return writer.fence;
  return takes ? undefined : writer.keep;
}
