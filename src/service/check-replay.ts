/** CheckReplay: the turns of a session run again, and where they leave their record, in words that a person can compare. */

import { create } from "@bufbuild/protobuf";
import { sessionUidOf, type Ports, type SessionUid } from "../base/index.ts";
import { rebuildRequest, replaySession, type AskedEffect, type Divergence, type TurnCheck } from "../controller/index.ts";
import { ErrorSchema, ModelCallSchema, type ModelCall } from "../gen/agentsessions/v1/common_pb.ts";
import {
  ReplayDivergenceSchema,
  TurnCheck_Outcome as Outcome,
  TurnCheckSchema,
  type CheckReplayRequest,
  type ReplayDivergence,
  type TurnCheck as WireTurnCheck,
} from "../gen/holdfast/v1/replay_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import { messageText, type Authorizer, type HarnessCatalog, type ModelRequest, type ToolExecutor } from "../spi/index.ts";
import { invalidArgument } from "../base/errors.ts";
import { accessSession } from "./access.ts";
import type { CallContext } from "./contract.ts";

/** What checking needs. */
export interface CheckContext {
  readonly journal: JournalStore;
  readonly harnesses: HarnessCatalog;
  readonly authorizer: Authorizer;
  readonly ports: Ports;
  readonly canMintTokens?: boolean | undefined;
  readonly tools?: Pick<ToolExecutor, "find" | "check"> | undefined;
}

/** See `JournalService.checkReplay`. */
export async function* checkReplay(
  host: CheckContext,
  request: CheckReplayRequest,
  context: CallContext,
): AsyncGenerator<WireTurnCheck, void, undefined> {
  const session = sessionUidOf(request.session, "session");
  const row = await accessSession(host, "session.read", session, "session", context);
  const harness = request.harness === "" ? undefined : request.harness;
  if (harness !== undefined && host.harnesses.find(harness) === undefined) {
    throw invalidArgument("harness", "must name a harness that this server has, or be empty for the recorded one");
  }
  for await (const check of replaySession(host, { row, harness, signal: context.signal })) {
    yield await wireCheck(host, session, check);
  }
}

async function wireCheck(host: CheckContext, session: SessionUid, check: TurnCheck): Promise<WireTurnCheck> {
  const { outcome } = check;
  const wire = create(TurnCheckSchema, {
    executionId: check.executionId,
    startSeq: BigInt(check.startSeq),
    lastSeq: BigInt(check.lastSeq),
    end: check.end,
  });
  switch (outcome.kind) {
    case "same":
      wire.outcome = Outcome.SAME;
      wire.effects = BigInt(outcome.effects);
      return wire;
    case "diverged":
      wire.outcome = Outcome.DIVERGED;
      wire.divergence = await wireDivergence(host, session, outcome.divergence);
      return wire;
    case "refused":
      wire.outcome = Outcome.REFUSED;
      wire.error = create(ErrorSchema, { code: outcome.error.facts.grpc, description: outcome.error.message });
      return wire;
  }
}

async function wireDivergence(host: CheckContext, session: SessionUid, divergence: Divergence): Promise<ReplayDivergence> {
  const { seq, reason, recorded, asked } = divergence;
  const wire = create(ReplayDivergenceSchema, {
    seq: BigInt(seq),
    reason,
    recordedKind: recorded?.kind ?? "",
    askedKind: asked?.kind ?? "",
    ...askedContent(asked),
  });
  if (recorded?.kind === "output") wire.recordedText = messageText(recorded.message);
  if (recorded?.kind === "model") {
    const rebuilt = await rebuildRequest(host.journal, host.ports.digest, { session, seq: recorded.seq, recorded: recorded.call });
    wire.recordedCall = rebuilt === undefined ? recorded.call : callOf(rebuilt.request, recorded.call);
    wire.recordedCallWhole = rebuilt?.whole ?? false;
  }
  return wire;
}

function askedContent(asked: AskedEffect | undefined): { askedCall?: ModelCall; askedText?: string } {
  if (asked?.kind === "model") return { askedCall: callOf(asked.request, { inputHash: asked.inputHash, id: "" }) };
  if (asked?.kind === "output") return { askedText: asked.text };
  return {};
}

/** A request as the contract's ModelCall, with the fields that are for the wire only. */
function callOf(request: ModelRequest, call: { readonly inputHash: string; readonly id: string }): ModelCall {
  const wire = create(ModelCallSchema, {
    model: request.model,
    params: { ...request.params },
    inputHash: call.inputHash,
    id: call.id,
    messages: [...request.messages],
    tools: [...(request.tools ?? [])],
  });
  if (request.toolChoice !== undefined) wire.toolChoice = request.toolChoice;
  return wire;
}
