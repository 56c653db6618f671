/** From a draft to a session: its defaults, its harness and its row. */

import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { newSessionUid } from "../base/ids.ts";
import type { Ports } from "../base/ports.ts";
import type { JournalStore, SessionRow, SessionSeed } from "../journal/index.ts";
import { servedNames, type HarnessCatalog } from "../spi/index.ts";
import type { CallContext } from "./contract.ts";
import type { SessionDraft } from "./session-request.ts";

/** What a new session takes where its creator said nothing. */
export interface SessionDefaults {
  readonly harness: string;
  /** May be empty: the session then has no default model. */
  readonly model: string;
}

/** What creating needs. */
export interface CreationContext {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly defaults: SessionDefaults;
  readonly ports: Ports;
}

/** How often a uid that is taken is replaced by another before that counts as a fault of the randomness. */
const UID_ATTEMPTS_MAX = 3;

/**
 * The seed of a new session, found valid; nothing is written. `harnessField` is what an error about the harness names. Throws
 * INVALID_ARGUMENT for an unknown harness, FAILED_PRECONDITION for one that is closed.
 */
export function seedOf(
  creation: CreationContext,
  draft: SessionDraft,
  context: CallContext,
  harnessField: "session.harness" | "harness",
): SessionSeed {
  const harness = draft.harness === "" ? creation.defaults.harness : draft.harness;
  const entry = creation.harnesses.find(harness);
  if (entry === undefined) {
    const names = servedNames(creation.harnesses);
    throw invalidArgument(harnessField, `must name a harness that this server has, or be empty for its default; it serves: ${names}`);
  }
  if (!entry.open) {
    const message = `${harnessField}: takes no new sessions: it is retired, or this host cannot serve it`;
    throw new HoldfastError("failed_precondition", message, { field: harnessField });
  }
  return {
    uid: newSessionUid(creation.ports),
    project: draft.project,
    name: draft.name,
    harness,
    model: draft.model === "" ? creation.defaults.model : draft.model,
    identity: draft.identity ?? context.caller.identity,
    origin: draft.origin,
    labels: draft.labels,
    annotations: draft.annotations,
    createTimeMs: creation.ports.clock.nowMs(),
  };
}

/** Creates the session durably (I8). Throws ALREADY_EXISTS for a name that is taken. */
export async function createFrom(creation: CreationContext, seed: SessionSeed, context: CallContext): Promise<SessionRow> {
  let attempt = seed;
  for (let left = UID_ATTEMPTS_MAX; left > 0; left--) {
    const outcome = await creation.journal.create(attempt, { signal: context.signal });
    switch (outcome.kind) {
      case "created":
        return outcome.row;
      case "name-taken":
        throw new HoldfastError("already_exists", "session.metadata.name: is taken by another session of the project", {
          field: "session.metadata.name",
        });
      case "uid-taken":
        attempt = { ...attempt, uid: newSessionUid(creation.ports) };
    }
  }
  throw new HoldfastError("internal", "no free uid was found for the session", { details: { attempts: UID_ATTEMPTS_MAX } });
}
