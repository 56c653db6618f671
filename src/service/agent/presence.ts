/** What the agent is doing, and how much of it its client is advised to show. Pure. */

import { create } from "@bufbuild/protobuf";
import { ActivityUpdateSchema, PresenceHintSchema } from "../../gen/roz/v1/agent_pb.ts";
import type { PresencePolicy } from "../../spi/index.ts";
import type { Said } from "./session-error.ts";
import type { TurnView } from "./turn-view.ts";

/** What the agent of a turn is doing; of no turn: nothing. */
export function activityOf(turn: TurnView | undefined): Said {
  return { case: "activityUpdate", value: create(ActivityUpdateSchema, activity(turn)) };
}

function activity(turn: TurnView | undefined): { readonly state: string; readonly detail: string } {
  if (turn === undefined || turn.isHidden) return { state: "idle", detail: "" };
  const { question, running } = turn;
  if (question !== undefined) return { state: "waiting_approval", detail: question.id };
  const newest = running.at(-1);
  return newest === undefined ? { state: "thinking", detail: "" } : { state: "calling_tool", detail: newest.tool };
}

/** How much of the agent to show. */
export function presenceOf(turn: TurnView | undefined, policy: PresencePolicy): Said {
  return { case: "presenceHint", value: create(PresenceHintSchema, presence(turn, policy)) };
}

function presence(turn: TurnView | undefined, policy: PresencePolicy): { readonly level: string; readonly reason: string } {
  if (turn === undefined || turn.isHidden) return { level: policy.idle, reason: "no turn runs" };
  const acting = turn.question === undefined ? turn.running.find(({ category }) => category === "physical") : undefined;
  if (acting !== undefined) return { level: policy.physical, reason: `${acting.tool} acts on the world` };
  return { level: policy.pure, reason: turn.question === undefined ? "a turn runs" : "a question waits for its answer" };
}
