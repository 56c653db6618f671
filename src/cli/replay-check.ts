/** `replay --check`: turns run again from their records, of one session or of many, and what came of it. */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import { HoldfastError, type ErrorCode } from "../base/errors.ts";
import type { Client, ReplayCheck, ReplayDivergence } from "../client/index.ts";
import { TurnCheckSchema } from "../gen/holdfast/v1/replay_pb.ts";
import { nodeDigest } from "../node/index.ts";
import type { Connection } from "./connect.ts";
import { divergenceLines, type DivergenceLine } from "./divergence-text.ts";
import type { ExitCode } from "./exit.ts";
import { messageJson } from "./json.ts";
import type { CommandContext } from "./perform.ts";
import { plain, plainLine } from "./plain.ts";
import type { Style } from "./screen.ts";

/** What to check: one session, or those of a project. */
export interface CheckTarget {
  readonly uid: string | undefined;
  readonly project: string | undefined;
  /** Only sessions created at or after this time. */
  readonly since: Date | undefined;
  readonly harness: string | undefined;
}

interface Counts {
  sessions: number;
  turns: number;
  same: number;
  diverged: number;
  refused: number;
}

/** Checks, prints, and says by the exit code whether everything is the same. */
export async function checkReplays(context: CommandContext, { client }: Connection, target: CheckTarget): Promise<ExitCode> {
  const report = new CheckReport(context, target.uid === undefined);
  for await (const uid of sessionsOf(client, target, context.signal)) {
    report.begin(uid);
    try {
      for await (const check of client.journal.checkReplay(uid, { harness: target.harness, signal: context.signal }))
        report.add(uid, check);
    } catch (error) {
      if (target.uid !== undefined || !isOfSession(error)) throw error;
      report.refuse(uid, error);
    }
    report.end(uid);
  }
  return report.finish();
}

/** The sessions, newest first. */
async function* sessionsOf(
  client: Client,
  { uid, project, since }: CheckTarget,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  if (uid !== undefined) {
    yield uid;
    return;
  }
  for await (const { metadata } of client.sessions.list({ project, pageSize: 500, signal })) {
    const createdMs = metadata?.createTime === undefined ? 0 : timestampMs(metadata.createTime);
    if (since !== undefined && createdMs < since.getTime()) return;
    yield metadata?.uid ?? "";
  }
}

/** Errors that say something of one session: the others are checked all the same. */
const OF_SESSION: ReadonlySet<ErrorCode> = new Set(["not_found", "failed_precondition", "resource_exhausted", "data_loss"]);

function isOfSession(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && OF_SESSION.has(error.code);
}

const STYLES: Readonly<Record<DivergenceLine["kind"], Style | undefined>> = {
  head: "bold",
  note: "dim",
  same: undefined,
  removed: "red",
  added: "green",
};

/** Prints checks as they come and counts them. The first divergence is shown in full, every further one in a line. */
class CheckReport {
  readonly #context: CommandContext;
  readonly #isSweep: boolean;
  readonly #counts: Counts = { sessions: 0, turns: 0, same: 0, diverged: 0, refused: 0 };
  #ofSession: { turns: number; findings: string[] } = { turns: 0, findings: [] };
  #shown = false;

  /** `isSweep`: many sessions, a line each; otherwise one, a line a turn. */
  constructor(context: CommandContext, isSweep: boolean) {
    this.#context = context;
    this.#isSweep = isSweep;
  }

  begin(uid: string): void {
    this.#counts.sessions += 1;
    this.#ofSession = { turns: 0, findings: [] };
    if (!this.#isSweep) this.#line(this.#context.screen.bold(`session ${plainLine(uid)}`));
  }

  add(uid: string, check: ReplayCheck): void {
    this.#counts.turns += 1;
    this.#ofSession.turns += 1;
    this.#counts[check.kind] += 1;
    const { screen } = this.#context;
    if (screen.json) {
      screen.value({ session: uid, check: messageJson(TurnCheckSchema, check.check) });
      return;
    }
    const finding = findingOf(check);
    if (check.kind !== "same") this.#ofSession.findings.push(finding);
    if (!this.#isSweep) this.#line(`${placeOf(check).padEnd(24)}  ${finding}`);
    if (check.kind === "diverged") this.#diverged(uid, check.divergence);
  }

  /** A session that could not be checked at all, or not to its end. */
  refuse(uid: string, error: HoldfastError): void {
    this.#counts.refused += 1;
    const { code, message } = error;
    if (this.#context.screen.json) this.#context.screen.value({ session: uid, error: { code, message } });
    else this.#ofSession.findings.push(`refused   ${plainLine(message)}`);
  }

  end(uid: string): void {
    if (!this.#isSweep) return;
    const { turns, findings } = this.#ofSession;
    const [first, ...others] = findings;
    const more = others.length === 0 ? "" : `  (and ${others.length} more)`;
    this.#line(`${plainLine(uid)}  ${counted(turns, "turn").padEnd(10)}  ${first === undefined ? "same" : `${first}${more}`}`);
  }

  finish(): ExitCode {
    const { sessions, turns, same, diverged, refused } = this.#counts;
    if (this.#context.screen.json) this.#context.screen.value({ summary: this.#counts });
    else {
      const checked = `checked ${counted(sessions, "session")}, ${counted(turns, "turn")}`;
      this.#line(`${checked}: ${same} same, ${diverged} diverged, ${refused} refused`);
    }
    if (diverged > 0) return 1;
    return refused > 0 || turns === 0 ? 8 : 0;
  }

  #diverged(uid: string, divergence: ReplayDivergence): void {
    if (this.#shown) return;
    this.#shown = true;
    const { screen } = this.#context;
    if (this.#isSweep) this.#line(screen.bold(`session ${plainLine(uid)}`));
    for (const { kind, text } of divergenceLines(divergence, nodeDigest)) {
      const style = STYLES[kind];
      this.#line(`  ${style === undefined ? text : screen.styled(style, text)}`);
    }
  }

  #line(text: string): void {
    if (!this.#context.screen.json) this.#context.screen.line(text);
  }
}

function placeOf({ check }: ReplayCheck): string {
  return `  turn ${check.startSeq}–${check.lastSeq}  ${plainLine(check.end)}`;
}

function findingOf(check: ReplayCheck): string {
  switch (check.kind) {
    case "same":
      return `same      ${counted(Number(check.check.effects), "effect")}`;
    case "diverged":
      return `diverged  at seq ${check.divergence.seq}: ${plainLine(check.divergence.reason)}`;
    case "refused":
      return `refused   ${plain(check.error.description)}`;
  }
}

function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}
