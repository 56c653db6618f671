/** The turn that a worker was spawned for, as its journal tells it: the first one of its session. */

import type { SessionUid, Seq } from "../../base/ids.ts";
import { decodeLogRecord } from "../../canon/index.ts";
import { EventKind, Lifecycle_Kind, type Event } from "../../gen/agentsessions/v1/common_pb.ts";
import { endStateOf, type EndState, type JournalStore } from "../../journal/index.ts";
import { messageText } from "../../spi/index.ts";

/** How a worker's turn began. */
export interface WorkerStart {
  readonly startSeq: Seq;
  /** The text of its first input. */
  readonly prompt: string;
}

/** How far it has come since. */
export interface WorkerProgress {
  /** The text of its last OUTPUT; "" before the first. */
  readonly lastWords: string;
  /** What its last word says, where that is an ERROR. */
  readonly error: string | undefined;
  /** Undefined while it has no END, and for ever where another turn began before it had one. */
  readonly end: { readonly state: EndState; readonly why: string } | undefined;
}

/** Its start; undefined for a session that has had no turn. */
export async function readWorkerStart(journal: JournalStore, worker: SessionUid): Promise<WorkerStart | undefined> {
  let startSeq: Seq | undefined;
  for await (const { event, seq } of eventsOf(journal, worker)) {
    const { body } = event;
    if (startSeq === undefined) {
      if (body.case === "executionStart") startSeq = seq;
      continue;
    }
    return { startSeq, prompt: event.kind === EventKind.EVENT_INPUT && body.case === "message" ? messageText(body.value) : "" };
  }
  return startSeq === undefined ? undefined : { startSeq, prompt: "" };
}

/** What came after its start. */
export async function readWorkerProgress(journal: JournalStore, worker: SessionUid, { startSeq }: WorkerStart): Promise<WorkerProgress> {
  let progress: WorkerProgress = { lastWords: "", error: undefined, end: undefined };
  let cancelled = "";
  for await (const { event } of eventsOf(journal, worker, (startSeq + 1) as Seq)) {
    const { body } = event;
    switch (body.case) {
      case "executionStart":
        return progress;
      case "end":
        return { ...progress, end: { state: endStateOf(body.value.state), why: body.value.error?.description ?? cancelled } };
      case "lifecycle":
        if (body.value.kind === Lifecycle_Kind.LIFECYCLE_CANCEL) cancelled = body.value.detail;
        break;
      case "error":
        progress = { ...progress, error: body.value.description };
        break;
      case "message":
        if (event.kind === EventKind.EVENT_OUTPUT) progress = { ...progress, lastWords: messageText(body.value), error: undefined };
        break;
      default:
        if (progress.error !== undefined) progress = { ...progress, error: undefined };
    }
  }
  return progress;
}

async function* eventsOf(
  journal: JournalStore,
  session: SessionUid,
  fromSeq?: Seq,
): AsyncGenerator<{ readonly event: Event; readonly seq: Seq }, void, undefined> {
  for await (const page of journal.read({ session, fromSeq })) {
    for (const { bytes, seq } of page) {
      const { event } = decodeLogRecord(bytes);
      if (event !== undefined) yield { event, seq };
    }
  }
}
