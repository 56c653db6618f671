/** What every call begins with: may the caller do this, and does the session exist. */

import { HoldfastError } from "../base/errors.ts";
import type { SessionUid } from "../base/ids.ts";
import type { JournalStore, SessionRow } from "../journal/index.ts";
import type { Action, Authorizer, Subject } from "../spi/index.ts";
import type { CallContext } from "./contract.ts";

/** Permits everything: for a host whose callers are one party, known by one token or by the loopback address. */
export const ALLOW_ALL: Authorizer = {
  authorize: async () => ({ kind: "allowed" }),
};

/** Throws PERMISSION_DENIED unless the caller may. */
export async function authorize(authorizer: Authorizer, action: Action, subject: Subject, context: CallContext): Promise<void> {
  const answer = await authorizer.authorize(context.caller, action, subject, { signal: context.signal });
  if (answer.kind === "denied") throw new HoldfastError("permission_denied", answer.reason);
}

/** Finds sessions for callers. */
export interface SessionAccess {
  readonly journal: JournalStore;
  readonly authorizer: Authorizer;
}

/**
 * The session's row, when the caller may do `action` to it. Throws NOT_FOUND naming `field` for an unknown uid, PERMISSION_DENIED.
 */
export async function accessSession(
  access: SessionAccess,
  action: Action,
  session: SessionUid,
  field: "session" | "uid" | "id" | "task_id",
  context: CallContext,
): Promise<SessionRow> {
  const row = await access.journal.get(session, { signal: context.signal });
  if (row === undefined) throw new HoldfastError("not_found", `${field}: no session has this uid`, { field });
  await authorize(access.authorizer, action, { project: row.seed.project, session }, context);
  return row;
}
