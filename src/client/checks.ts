/** How turns replayed, as the client hands it out. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "../base/errors.ts";
import type { Error as EventError } from "../gen/agentsessions/v1/common_pb.ts";
import { Journal } from "../gen/holdfast/v1/journal_pb.ts";
import { CheckReplayRequestSchema, TurnCheck_Outcome, type ReplayDivergence, type TurnCheck } from "../gen/holdfast/v1/replay_pb.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** How one ended turn replayed. `check` is the protocol's own message, with the turn's place and end. */
export type ReplayCheck =
  /** The harness asked for every recorded effect, in order, and ended as the turn had. */
  | { readonly kind: "same"; readonly check: TurnCheck }
  /** It asked for something else, for more, or for less. */
  | { readonly kind: "diverged"; readonly check: TurnCheck; readonly divergence: ReplayDivergence }
  /** It could not be run again there. */
  | { readonly kind: "refused"; readonly check: TurnCheck; readonly error: EventError };

/** With which harness to replay. */
export interface CheckReplayOptions extends CallOptions {
  /** The harness that runs every turn. Default: the recorded one, whatever its version is now. */
  readonly harness?: string | undefined;
}

/** See `JournalClient.checkReplay`. */
export async function* checkReplay(
  transport: Transport,
  session: string,
  { harness = "", ...options }: CheckReplayOptions,
): AsyncGenerator<ReplayCheck, void, undefined> {
  const request = create(CheckReplayRequestSchema, { session, harness });
  for await (const check of transport.stream(Journal.method.checkReplay, request, options)) yield checkOf(check);
}

function checkOf(check: TurnCheck): ReplayCheck {
  const { outcome, divergence, error } = check;
  if (outcome === TurnCheck_Outcome.SAME) return { kind: "same", check };
  if (outcome === TurnCheck_Outcome.DIVERGED && divergence !== undefined) return { kind: "diverged", check, divergence };
  if (outcome === TurnCheck_Outcome.REFUSED && error !== undefined) return { kind: "refused", check, error };
  throw new HoldfastError("internal", "check: the server answered with an outcome that this client does not know");
}
