/** The Sessions service: the contract's calls over a journal and a controller. */

import { create } from "@bufbuild/protobuf";
import type { Ports } from "../base/ports.ts";
import { sessionUidOf } from "../base/ids.ts";
import type { Controller } from "../controller/index.ts";
import {
  ListSessionsResponseSchema,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type ReplayRequest,
} from "../gen/agentsessions/v1/session_pb.ts";
import { sessionOf, type JournalStore, type ListPage, type SessionRow, type StoredRecord } from "../journal/index.ts";
import type { Authorizer, HarnessCatalog } from "../spi/index.ts";
import { accessSession, authorize } from "./access.ts";
import { approve } from "./approve.ts";
import type { CallContext, SessionsService } from "./contract.ts";
import { createFrom, seedOf, type SessionDefaults } from "./creation.ts";
import { exec, type ExecContext } from "./exec.ts";
import { parseCancel } from "./exec-request.ts";
import { fork, resume, suspend } from "./lifecycle.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "./limits.ts";
import { pageToken, parseListSessions } from "./list-request.ts";
import { parseReplay } from "./read-request.ts";
import { parseCreateSession } from "./session-request.ts";

/** What the services are made of. */
export interface ServiceOptions {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly harnesses: HarnessCatalog;
  readonly authorizer: Authorizer;
  readonly ports: Ports;
  /** What a session takes whose creator names no harness or model. */
  readonly defaults: SessionDefaults;
  readonly limits?: Partial<ServiceLimits> | undefined;
}

/** Creates the handlers of `agentsessions.v1.Sessions`. They hold no state of their own. */
export function createSessionsService(options: ServiceOptions): SessionsService {
  const host: ExecContext = { ...options, limits: { ...SERVICE_LIMITS, ...options.limits } };
  return {
    async createSession(request, context) {
      const draft = parseCreateSession(request, host.limits);
      await authorize(host.authorizer, "session.create", { project: draft.project }, context);
      const seed = seedOf(host, draft, context, "session.harness");
      return sessionOf(await createFrom(host, seed, context));
    },

    async getSession(request, context) {
      const uid = sessionUidOf(request.uid, "uid");
      return sessionOf(await accessSession(host, "session.read", uid, "uid", context));
    },

    listSessions: (request, context) => listSessions(host, request, context),

    async deleteSession(request, context) {
      const uid = sessionUidOf(request.uid, "uid");
      await accessSession(host, "session.delete", uid, "uid", context);
      return sessionOf(await host.controller.delete(uid, context.caller.identity));
    },

    async cancel(request, context) {
      const asked = parseCancel(request, host.limits);
      await accessSession(host, "session.cancel", asked.session, "session", context);
      return sessionOf(await host.controller.cancel(asked));
    },

    approve: (request, context) => approve(host, request, context),

    suspend: (request, context) => suspend(host, request, context),

    resume: (request, context) => resume(host, request, context),

    fork: (request, context) => fork(host, request, context),

    exec: (request, context) => exec(host, request, context),

    replay: (request, context) => replay(host, request, context),
  };
}

async function listSessions(host: ExecContext, request: ListSessionsRequest, context: CallContext): Promise<ListSessionsResponse> {
  const { digest } = host.ports;
  const asked = parseListSessions(request, host.limits, digest);
  await authorize(host.authorizer, "session.list", { project: asked.project }, context);
  const page = cutPage(await host.journal.list({ ...asked, signal: context.signal }), host.limits.pageBytesSoftMax);
  return create(ListSessionsResponseSchema, {
    sessions: page.rows.map(sessionOf),
    nextPageToken: page.next === undefined ? "" : pageToken(page.next, asked.project, digest),
  });
}

/** Ends a page early where its sessions get large, so that an answer stays within what clients receive. One session always fits. */
function cutPage(page: ListPage, bytesMax: number): ListPage {
  let bytes = 0;
  for (const [index, row] of page.rows.entries()) {
    bytes += sizeOf(row);
    const last = page.rows[index - 1];
    if (bytes > bytesMax && last !== undefined) {
      return { rows: page.rows.slice(0, index), next: { createTimeMs: last.seed.createTimeMs, uid: last.seed.uid } };
    }
  }
  return page;
}

/** About the encoded size of a session, never far below it: a UTF-16 unit takes three bytes at most. */
function sizeOf(row: SessionRow): number {
  let chars = 512;
  for (const map of [row.seed.labels, row.seed.annotations, row.seed.origin?.attributes ?? {}]) {
    for (const [key, value] of Object.entries(map)) chars += key.length + value.length + 4;
  }
  return chars * 3;
}

async function* replay(
  host: ExecContext,
  request: ReplayRequest,
  context: CallContext,
): AsyncGenerator<readonly StoredRecord[], void, undefined> {
  const { session, fromSeq, toSeq } = parseReplay(request);
  const row = await accessSession(host, "session.read", session, "session", context);
  const head = row.projection.lastSeq;
  const last = toSeq === undefined || toSeq > head ? head : toSeq;
  if (fromSeq > last) return;
  yield* host.journal.read({ session, fromSeq, toSeq: last, signal: context.signal });
}
