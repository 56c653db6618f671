/**
 * A draft: what one transaction is going to write, worked out before it begins.
 *
 * Invariants:
 * - A draft sees what is durable and, over it, what its own earlier items did. It changes neither; a draft that is dropped
 *   leaves no trace.
 * - Each item is whole: it is refused, it throws, or everything it does is in the draft.
 */

import { invariant } from "../base/assert.ts";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { SEQ_NONE, type Fence, type SessionUid } from "../base/ids.ts";
import { admit, advance, renewed } from "./admission.ts";
import { adoptedState, adoptionRefusal, adoptRecords, isBare, type ForkBase } from "./adoption.ts";
import { DraftWork, nameKey } from "./draft-work.ts";
import { FORK_CHILDREN_MAX } from "./limits.ts";
import { reclaimStep } from "./reclaim.ts";
import { seal } from "./seal.ts";
import { isIncomplete, isLive, newSessionState, readableSeq, rowOf, type SessionState } from "./session-state.ts";
import type {
  AdoptOutcome,
  AdoptRequest,
  AppendOutcome,
  AppendRequest,
  CompleteOutcome,
  CreateOutcome,
  ForkOutcome,
  ForkedChild,
  ForkRequest,
  ReclaimOutcome,
  RenewRequest,
  SessionRow,
  SessionSeed,
} from "./store.ts";

/** The operations of a store, each on top of the ones before it. */
export class Draft extends DraftWork {
  create(seed: SessionSeed): CreateOutcome {
    if (this.load(seed.uid) !== undefined || this.isTouched(seed.uid)) return { kind: "uid-taken" };
    if (this.nameTaken(seed.project, seed.name)) return { kind: "name-taken" };
    const state = newSessionState(this.ports.nextKey(), seed, this.ports.nowMs);
    this.put(undefined, state, []);
    return { kind: "created", row: rowOf(state, this.ports.nowMs) };
  }

  append(request: AppendRequest): AppendOutcome {
    const { digest, nowMs } = this.ports;
    const state = this.load(request.session);
    const admitted = admit(state, request, nowMs);
    if (admitted.kind !== "admitted") return admitted;
    invariant(state !== undefined, "an admitted append has a session");
    const advanced = advance(state, admitted, request, digest, nowMs);
    this.addRecords(
      state.key,
      advanced.records,
      request.events.map(({ aside }) => aside),
      advanced.state,
    );
    this.put(state, advanced.state, advanced.records);
    for (const receipt of request.receipts ?? []) this.receipts.push({ key: state.key, receipt });
    return { kind: "appended", records: advanced.records, fence: admitted.fence, projection: advanced.state.projection };
  }

  fork(request: ForkRequest): ForkOutcome {
    const parent = this.load(request.parent);
    if (parent === undefined) return { kind: "not-found" };
    if (!isLive(parent)) return { kind: "deleted" };
    const { lastSeq } = parent.projection;
    if (request.expectedLastSeq !== undefined && request.expectedLastSeq !== lastSeq) return { kind: "conflict", lastSeq };
    if (request.atSeq > lastSeq) return { kind: "past-head", lastSeq };
    this.#requireSound(request, parent);
    const taken = this.#takenName(request);
    if (taken !== undefined) return { kind: "name-taken", name: taken };
    const children = request.children.map((child) => this.#sealChild(request, parent, child));
    for (const { state, records, marker } of children) {
      this.addRecords(state.key, records, [marker.aside], undefined);
      this.put(undefined, state, records);
    }
    return { kind: "forked", rows: children.map(({ state }) => rowOf(state, this.ports.nowMs)) };
  }

  renew(request: RenewRequest): SessionUid[] {
    const lost: SessionUid[] = [];
    for (const { session, fence } of request.sessions) {
      const state = this.load(session);
      const lease = state && renewed(state, request.holder, fence, request.leaseMs, this.ports.nowMs);
      if (state === undefined || lease === undefined) lost.push(session);
      else this.change(state, { ...state, lease });
    }
    return lost;
  }

  adopt(request: AdoptRequest): AdoptOutcome {
    const { digest, nowMs } = this.ports;
    const found = this.load(request.seed.uid);
    const state = found === undefined || isBare(found) ? this.#adoptable(request, found) : found;
    if (state === undefined) return { kind: "no-parent" };
    const refusal = adoptionRefusal(state, request, nowMs);
    if (refusal !== undefined) return refusal;
    const adopted = adoptRecords(state, request.records, digest, nowMs);
    if (adopted.kind === "broken") return adopted;
    this.addRecords(
      state.key,
      adopted.records,
      request.records.map(({ aside }) => aside),
      adopted.state,
    );
    this.put(found, adopted.state, adopted.records);
    return { kind: "adopted", row: rowOf(adopted.state, nowMs), created: found === undefined };
  }

  complete(sessions: readonly SessionUid[]): CompleteOutcome {
    const named = new Set<string>();
    const states: SessionState[] = [];
    for (const session of new Set(sessions)) {
      const state = this.load(session);
      if (state === undefined || isBare(state)) return { kind: "not-found", session };
      if (state.keptSeq !== undefined && !isIncomplete(state)) return { kind: "not-found", session };
      const completed: SessionState = { ...state, keptSeq: undefined };
      const { project, name } = state.seed;
      if (state.keptSeq !== undefined && isLive(completed) && name !== "") {
        if (named.has(nameKey(project, name)) || this.nameTaken(project, name)) return { kind: "name-taken", session, name };
        named.add(nameKey(project, name));
      }
      states.push(state);
    }
    return { kind: "completed", rows: states.map((state) => this.#completed(state)) };
  }

  reclaim(session: SessionUid): ReclaimOutcome {
    const state = this.load(session);
    if (state === undefined) return { kind: "not-found" };
    const { committed } = this.ports;
    const step = reclaimStep(state, {
      neededSeq: this.neededSeq(session),
      sliceFloor: (floorSeq, toSeq) => committed.sliceFloor(state.key, floorSeq, toSeq),
    });
    switch (step.kind) {
      case "refused":
        return step.outcome;
      case "remove":
        this.cut(state, SEQ_NONE);
        this.put(state, { ...state, version: state.version + 1 }, []);
        this.remove(session);
        return { kind: "reclaimed" };
      case "cut":
        this.cut(state, readableSeq(step.state));
        this.put(state, step.state, []);
        return step.outcome;
    }
  }

  #completed(state: SessionState): SessionRow {
    const { nowMs } = this.ports;
    if (state.keptSeq === undefined) return rowOf(state, nowMs);
    const updateTimeMs = Math.max(state.updateTimeMs, nowMs);
    const after: SessionState = { ...state, keptSeq: undefined, version: state.version + 1, updateTimeMs };
    this.put(state, after, []);
    return rowOf(after, nowMs);
  }

  /** The state that an adoption creates, or what it makes of a bare one; undefined where the parent is not what it says. */
  #adoptable(request: AdoptRequest, bare: SessionState | undefined): SessionState | undefined {
    const { parent, seed } = request;
    if (bare === undefined && this.isTouched(seed.uid)) return undefined;
    const base = parent === undefined ? undefined : this.#forkBase(parent);
    if (parent !== undefined && base === undefined) return undefined;
    if (bare === undefined) return adoptedState(this.ports.nextKey(), request, base, this.ports.nowMs);
    const { projection } = parent ?? bare;
    return projection.lastSeq <= bare.projection.lastSeq ? bare : { ...bare, projection, keptSeq: projection.lastSeq };
  }

  /** The parent of an adoption, if what is said of it is so. */
  #forkBase({ uid, forkSeq, projection }: NonNullable<AdoptRequest["parent"]>): ForkBase | undefined {
    const state = this.load(uid);
    const { lastSeq, headHash } = projection;
    if (state === undefined || lastSeq < 1 || lastSeq > forkSeq || lastSeq > readableSeq(state)) return undefined;
    const hash = lastSeq === state.projection.lastSeq ? state.projection.headHash : this.hashAt(state.key, lastSeq);
    return hash === headHash ? state : undefined;
  }

  /** The first child name that is taken, be it by another child of the same fork. */
  #takenName({ children }: ForkRequest): string | undefined {
    const seen = new Set<string>();
    for (const { seed } of children) {
      if (seed.name === "") continue;
      const key = nameKey(seed.project, seed.name);
      if (seen.has(key) || this.nameTaken(seed.project, seed.name)) return seed.name;
      seen.add(key);
    }
    return undefined;
  }

  #requireSound({ children, atSeq, projection }: ForkRequest, parent: SessionState): void {
    if (children.length < 1 || children.length > FORK_CHILDREN_MAX) {
      throw invalidArgument("count", `must be from 1 to ${FORK_CHILDREN_MAX}`);
    }
    if (atSeq < 1) throw invalidArgument("at_seq", "must be from 1 to the parent's head");
    const uids = new Set(children.map(({ seed }) => seed.uid));
    if (uids.size !== children.length || children.some(({ seed }) => this.load(seed.uid) !== undefined)) {
      throw new HoldfastError("already_exists", "fork: a child's uid belongs to another session");
    }
    const hash = atSeq === parent.projection.lastSeq ? parent.projection.headHash : this.hashAt(parent.key, atSeq);
    invariant(projection.lastSeq === atSeq && projection.headHash === hash, "a fork's projection is the parent's at the fork");
  }

  #sealChild({ atSeq, projection }: ForkRequest, parent: SessionState, { seed, marker, compute }: ForkedChild) {
    const fence = (parent.fence + 1) as Fence;
    const sealed = seal(projection, fence, [marker], this.ports.digest);
    const state: SessionState = {
      ...newSessionState(this.ports.nextKey(), seed, this.ports.nowMs),
      parent: { uid: parent.seed.uid, key: parent.key, forkSeq: atSeq },
      fence,
      compute,
      projection: sealed.projection,
    };
    return { state, records: sealed.records, marker };
  }
}
