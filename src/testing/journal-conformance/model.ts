/**
 * A journal store as plain as can be: a map of sessions, each with all its records, inherited ones copied. It does one thing at a
 * time and shares no code with the stores, so what both say is worth something.
 */

import type { ListRequest } from "../../journal/index.ts";

/** What the model knows of a record. */
export interface ModelRecord {
  readonly text: string;
  readonly fence: number;
}

/** A session of the model. */
export interface ModelSession {
  readonly uid: string;
  readonly project: string;
  readonly name: string;
  readonly createTimeMs: number;
  readonly parent: string | undefined;
  readonly records: ModelRecord[];
  fence: number;
  version: number;
  holder: string | undefined;
  leaseEndMs: number;
  deleted: boolean;
  openTurn: boolean;
  /** Of the parent's records, those that the session begins with. */
  readonly forkSeq: number;
  /** Set once it was reclaimed: how many of its records are left. */
  kept: number | undefined;
}

/** Who an append of the model is made by. */
export type ModelWriter =
  | { readonly kind: "claim"; readonly holder: string; readonly leaseMs: number; readonly keep?: number; readonly takeOver?: boolean }
  | { readonly kind: "hold" | "release"; readonly fence: number };

/** An append of texts; `start`, `end` and `delete` stand for those events. */
export interface ModelAppend {
  readonly session: string;
  readonly expected: number | undefined;
  readonly writer: ModelWriter;
  readonly texts: readonly string[];
}

/** A fork of the model. */
export interface ModelFork {
  readonly parent: string;
  readonly atSeq: number;
  readonly children: readonly { readonly uid: string; readonly name: string; readonly project: string; readonly createTimeMs: number }[];
}

/** The model. Answers are texts, for comparing. */
export class ModelStore {
  readonly sessions = new Map<string, ModelSession>();
  nowMs = 0;

  create(seed: { readonly uid: string; readonly project: string; readonly name: string; readonly createTimeMs: number }): string {
    if (this.sessions.has(seed.uid)) return "uid-taken";
    if (this.#named(seed.project, seed.name)) return "name-taken";
    this.sessions.set(seed.uid, blank({ ...seed, parent: undefined }));
    return "created";
  }

  append({ session: uid, expected, writer, texts }: ModelAppend): string {
    const session = this.sessions.get(uid);
    if (session === undefined) return "not-found";
    if (session.deleted) return "deleted";
    const holder = this.holderOf(session);
    let { fence } = session;
    if (writer.kind === "claim") {
      const held = holder !== undefined && holder !== writer.holder;
      if (held && writer.takeOver !== true) return `held ${holder}`;
      if (held || writer.keep === undefined) fence++;
      else if (writer.keep !== fence) return `fenced ${fence}`;
    } else if (writer.fence !== fence) return `fenced ${fence}`;
    if (expected !== undefined && expected !== session.records.length) return `conflict ${session.records.length}`;
    this.#write(session, fence, texts);
    if (writer.kind === "claim") this.#lease(session, writer.holder, writer.leaseMs);
    if (writer.kind === "release" || session.deleted) session.holder = undefined;
    const changed = texts.length > 0 || fence !== session.fence || holder !== this.holderOf(session);
    session.fence = fence;
    if (changed) session.version++;
    return `appended ${session.records.length} under ${fence}`;
  }

  fork({ parent: uid, atSeq, children }: ModelFork): string {
    const parent = this.sessions.get(uid);
    if (parent === undefined) return "not-found";
    if (parent.deleted) return "deleted";
    if (atSeq > parent.records.length) return `past-head ${parent.records.length}`;
    const names = new Set<string>();
    for (const { project, name } of children) {
      if (name !== "" && (names.has(`${project}/${name}`) || this.#named(project, name))) return `name-taken ${name}`;
      names.add(`${project}/${name}`);
    }
    for (const seed of children) {
      const child = blank({ ...seed, parent: uid }, atSeq);
      child.records.push(...parent.records.slice(0, atSeq));
      child.openTurn = openTurnOf(child.records);
      child.fence = parent.fence + 1;
      child.records.push({ text: "#9", fence: child.fence });
      this.sessions.set(seed.uid, child);
    }
    return "forked";
  }

  /** Reclaims all that can go at once. */
  reclaim(uid: string): string {
    const session = this.sessions.get(uid);
    if (session === undefined) return "not-found";
    if (!session.deleted) return "not-deleted";
    const children = [...this.sessions.values()].filter((other) => other.parent === uid);
    const kept = Math.max(0, ...children.map((child) => Math.min(child.forkSeq, child.kept ?? child.records.length)));
    if (kept === 0) {
      this.sessions.delete(uid);
      return "reclaimed";
    }
    if (session.kept !== kept) session.version++;
    session.kept = kept;
    return `kept ${kept}`;
  }

  renew(holder: string, leaseMs: number, sessions: readonly { readonly session: string; readonly fence: number }[]): string {
    const lost = sessions.filter(({ session: uid, fence }) => {
      const session = this.sessions.get(uid);
      if (session === undefined || session.deleted || session.fence !== fence || session.holder !== holder) return true;
      this.#lease(session, holder, leaseMs);
      return false;
    });
    return `lost ${lost.map(({ session }) => session).join()}`;
  }

  list(request: Omit<ListRequest, "limit" | "after">): string[] {
    return [...this.sessions.values()]
      .filter((session) => request.project === undefined || session.project === request.project)
      .filter((session) => request.parent === undefined || session.parent === request.parent)
      .filter((session) => request.openTurn === undefined || session.openTurn === request.openTurn)
      .filter((session) => request.includeDeleted === true || !session.deleted)
      .filter((session) => session.createTimeMs >= (request.sinceMs ?? 0))
      .toSorted((left, right) => right.createTimeMs - left.createTimeMs || (left.uid < right.uid ? -1 : 1))
      .map((session) => session.uid);
  }

  holderOf(session: ModelSession): string | undefined {
    return session.leaseEndMs > this.nowMs ? session.holder : undefined;
  }

  #named(project: string, name: string): boolean {
    return name !== "" && [...this.sessions.values()].some((other) => !other.deleted && other.project === project && other.name === name);
  }

  #lease(session: ModelSession, holder: string, leaseMs: number): void {
    session.holder = holder;
    session.leaseEndMs = this.nowMs + leaseMs;
  }

  #write(session: ModelSession, fence: number, texts: readonly string[]): void {
    for (const text of texts) session.records.push({ text: TEXTS[text] ?? text, fence });
    session.openTurn = openTurnOf(session.records);
    if (texts.includes("delete")) session.deleted = true;
  }
}

/** How records that are no OUTPUT show: as the number of their kind. */
const TEXTS: Readonly<Record<string, string>> = { start: "#12", end: "#10", delete: "#9" };

function openTurnOf(records: readonly ModelRecord[]): boolean {
  const marks = records.map(({ text }) => text).filter((text) => text === "#12" || text === "#10");
  return marks.at(-1) === "#12";
}

function blank(seed: Pick<ModelSession, "uid" | "project" | "name" | "createTimeMs" | "parent">, forkSeq = 0): ModelSession {
  const life = { fence: 0, version: 1, holder: undefined, leaseEndMs: 0, deleted: false, openTurn: false, kept: undefined };
  return { ...seed, ...life, records: [], forkSeq };
}
