/** Who may do what. The core asks; the composition root decides how it is answered. */

import type { CallOptions, Start } from "./harness.ts";
import type { IdentityRef } from "./wire.ts";

/** The authenticated caller of a request; `undefined` principal means that authentication is not configured. */
export interface Caller {
  readonly identity: IdentityRef | undefined;
  /** Set for a harness that calls its host: the running execution that its credential is good for. */
  readonly execution?: Start | undefined;
}

/** What a caller asks to do. */
export type Action =
  | "session.create"
  | "session.read"
  | "session.list"
  | "session.exec"
  | "session.cancel"
  | "session.delete"
  | "session.fork"
  | "session.suspend"
  | "session.resume"
  | "session.approve"
  | "session.export"
  | "session.import"
  | "environment.read"
  | "environment.write"
  | "harness.read"
  | "harness.operate";

/** What it asks to do it to. */
export interface Subject {
  readonly project: string;
  /** Absent for actions on a whole project. */
  readonly session?: string | undefined;
}

/** The answer. `reason` is shown to the caller. */
export type Authorization = { readonly kind: "allowed" } | { readonly kind: "denied"; readonly reason: string };

/** Decides. */
export interface Authorizer {
  authorize(caller: Caller, action: Action, subject: Subject, options?: CallOptions): Promise<Authorization>;
}
