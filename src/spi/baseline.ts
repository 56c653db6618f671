/**
 * LIFECYCLE BASELINE as this host writes it: a mark, then the harness's own account. The contract leaves `detail` to whoever writes it, so
 * that of another writer says nothing here: it is no effect, and no harness is asked for it again.
 */

import { EventKind, Lifecycle_Kind, type Event } from "../gen/agentsessions/v1/common_pb.ts";

const MARK = "holdfast:";

/** The detail that is recorded for a harness's account. */
export function baselineDetail(account: string): string {
  return MARK + account;
}

/** The account in an event; undefined for every other event, and for a baseline of another writer. */
export function baselineAccount({ kind, body }: Pick<Event, "kind" | "body">): string | undefined {
  if (kind !== EventKind.EVENT_LIFECYCLE || body.case !== "lifecycle") return undefined;
  const { kind: what, detail } = body.value;
  return what === Lifecycle_Kind.LIFECYCLE_BASELINE && detail.startsWith(MARK) ? detail.slice(MARK.length) : undefined;
}
