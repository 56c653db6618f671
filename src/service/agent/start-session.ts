/**
 * StartSession: from what a client asks for to a session that is there.
 *
 * Invariant: nothing is written before everything in the request was found valid.
 */

import { clone, create } from "@bufbuild/protobuf";
import { utf8Length } from "../../base/bytes.ts";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import type { SessionUid } from "../../base/ids.ts";
import type { ExecInvocation } from "../../controller/index.ts";
import { ClientNotesSchema } from "../../gen/holdfast/v1/agent_notes_pb.ts";
import { StartSessionSchema, type StartSession } from "../../gen/roz/v1/agent_pb.ts";
import type { SessionRow, SessionSeed } from "../../journal/index.ts";
import type { Environment, IdentityRef, Message } from "../../spi/index.ts";
import { authorize } from "../access.ts";
import { checkContent } from "../content.ts";
import type { CallContext } from "../contract.ts";
import { createFrom, seedOf } from "../creation.ts";
import {
  AGENT_HARNESS,
  ENVIRONMENT_ANNOTATION,
  HOST_ANNOTATION,
  KIND_ANNOTATION,
  resolveContextTokens,
  resolveHost,
  resolveModel,
  turnConfig,
} from "../environment/index.ts";
import { SERVICE_LIMITS } from "../limits.ts";
import { bareDraft } from "../session-request.ts";
import { overLimit, plainText, refuseMany } from "../text.ts";
import { SessionNotes } from "./client-notes.ts";
import { historyMessages, turnsOf } from "./history.ts";
import { hostToolNames, type AgentHost, type SessionPlace } from "./host.ts";
import type { AgentLimits } from "./limits.ts";
import { checkTools, toolSpec } from "./tool-schemas.ts";
import { HISTORY_HARNESS } from "./turn-view.ts";

/** A session that was started. */
export interface StartedSession {
  readonly row: SessionRow;
  readonly notes: SessionNotes;
  readonly place: SessionPlace;
}

/** Starts a session. Throws what is wrong with the request, by its field. */
export async function startSession(host: AgentHost, start: StartSession, context: CallContext): Promise<StartedSession> {
  checkStart(start, host);
  const history = historyMessages(start.history, host.limits);
  const place = placeAsked(host, start);
  const draft = draftOf(start, place);
  await authorize(host.authorizer, "session.create", { project: draft.project }, context);
  await authorize(host.authorizer, "session.exec", { project: draft.project }, context);
  const seed = seedOf(host, draft, context, "harness");
  checkModel(host, seed);
  refuseLargeConfig(host, start, place);
  const turns = [...turnsOf(history, SERVICE_LIMITS.inputsMax)];
  for (const inputs of turns) await host.controller.plan(seed, bringing(inputs, context.caller.identity));
  context.signal.throwIfAborted();
  const created = await createFrom(host, seed, context);
  const session = created.seed.uid;
  const kept = clone(StartSessionSchema, start);
  Object.assign(kept, { tools: [], history: [] });
  const notes = await SessionNotes.begin(host.notes, session, create(ClientNotesSchema, { start: kept, tools: start.tools }));
  for (const inputs of turns) await bring(host, session, inputs, context.caller.identity);
  return { row: (await host.journal.get(session)) ?? created, notes, place };
}

function checkStart(start: StartSession, { limits, checks }: Pick<AgentHost, "limits" | "checks">): void {
  // Tools and history are looked at by themselves.
  const bare: StartSession = { ...start, tools: [], history: [] };
  checkContent(StartSessionSchema, bare, "start", SERVICE_LIMITS.nestingMax);
  plainText(start.environmentId, "environment_id", limits.idCharsMax);
  plainText(start.hostId ?? "", "host_id", SERVICE_LIMITS.resourceCharsMax);
  plainText(start.model ?? "", "model", SERVICE_LIMITS.resourceCharsMax);
  checkProjectContext(start.projectContext, limits);
  checkTools(start.tools, "tools", { limits, checks });
}

function checkProjectContext(blocks: readonly string[], limits: AgentLimits): void {
  refuseMany(blocks.length, limits.contextBlocksMax, "project_context", "blocks");
  const bytes = blocks.reduce((sum, block) => sum + utf8Length(block), 0);
  if (bytes > limits.projectContextBytesMax) {
    throw overLimit("project_context", `takes ${bytes} bytes; at most ${limits.projectContextBytesMax} are allowed`);
  }
}

function placeAsked(host: AgentHost, { environmentId, hostId = "" }: StartSession): SessionPlace {
  const environment = host.environments.find(environmentId);
  if (environment === undefined) throw invalidArgument("environment_id", unknownEnvironment(host.environments.list()));
  return { environment, host: resolveHost(environment, hostId, hostToolNames(host)) };
}

/** An error names so many. */
const NAMES_MAX = 20;

function unknownEnvironment(environments: readonly Environment[]): string {
  const ids = environments.map(({ id }) => id);
  const more = ids.length - NAMES_MAX;
  return `must be an environment of this server, or empty; it has: ${[...ids.slice(0, NAMES_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ")}`;
}

function draftOf({ model = "", maxContextTokens }: StartSession, { environment, host }: SessionPlace): ReturnType<typeof bareDraft> {
  resolveContextTokens(environment, maxContextTokens);
  const annotations = {
    [ENVIRONMENT_ANNOTATION]: environment.id,
    ...(host.hostId === "" ? {} : { [HOST_ANNOTATION]: host.hostId }),
    [KIND_ANNOTATION]: "interactive",
  };
  return { ...bareDraft(host.harness), model: resolveModel(environment, model), annotations };
}

/** Throws INVALID_ARGUMENT where the session's turns could not ask its model. */
function checkModel({ models }: AgentHost, { model, harness }: SessionSeed): void {
  if (model === "" && harness === AGENT_HARNESS)
    throw invalidArgument("model", "must be named: neither the environment nor this server has a default");
  if (model !== "" && models.providerOf(model) === undefined)
    throw invalidArgument("model", "must be one that this server serves; others need their provider's key where it runs");
}

/** Throws RESOURCE_EXHAUSTED where a turn's config would not fit, now rather than at the first message. */
function refuseLargeConfig(host: AgentHost, start: StartSession, { environment, host: where }: SessionPlace): void {
  const config = turnConfig(environment, {
    mode: "react",
    host: where,
    clientTools: start.tools.map((tool) => ({ name: tool.name, ...toolSpec(tool, host.limits) })),
    hostTools: hostToolNames(host),
    projectContext: start.projectContext,
    model: "",
    messageId: "m".repeat(host.limits.idCharsMax),
  });
  const most = SERVICE_LIMITS.configBytesMax - CONFIG_ROOM_BYTES;
  if (config.byteLength > most) {
    throw overLimit(
      "project_context",
      `takes too much together with the tools' names: ${config.byteLength} bytes as a turn's config; at most ${most} are allowed`,
    );
  }
}

/** What the config of a turn may take more than that of the first one: its mode, its model, what it observes. */
const CONFIG_ROOM_BYTES = 2_048;

function bringing(inputs: readonly Message[], caller: IdentityRef | undefined): ExecInvocation {
  return {
    inputs,
    caller,
    harness: HISTORY_HARNESS,
    config: new Uint8Array(),
    resumeFromSeq: 0n,
    expectedLastSeq: undefined,
    deadlineMs: undefined,
  };
}

/** Records a piece of a history as one turn. */
async function bring(host: AgentHost, session: SessionUid, inputs: readonly Message[], caller: IdentityRef | undefined): Promise<void> {
  const row = await host.journal.get(session);
  if (row === undefined) throw new HoldfastError("internal", "session: it is gone while it was started");
  const turn = await host.controller.begin(session, await host.controller.plan(row, bringing(inputs, caller)));
  const outcome = await turn.outcome;
  if (outcome.kind === "interrupted") throw outcome.error;
}
