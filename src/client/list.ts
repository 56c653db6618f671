/** Listing sessions: an iterable that asks for pages as they are needed. */

import { create } from "@bufbuild/protobuf";
import { ListSessionsRequestSchema, Sessions, type Session } from "../gen/agentsessions/v1/session_pb.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** What to list. Each page is a call of its own: `timeoutMs` counts for each. */
export interface ListOptions extends CallOptions {
  /** The exact project; "" or left out is the default project. */
  readonly project?: string | undefined;
  /** Sessions asked for at once: 1 to 500. Default 50. */
  readonly pageSize?: number | undefined;
  /** Where to begin: the `nextPageToken` of an earlier page. */
  readonly pageToken?: string | undefined;
}

/** A page of sessions. */
export interface SessionPage {
  readonly sessions: readonly Session[];
  /** Where the next page begins; "" after the last one. */
  readonly nextPageToken: string;
}

/** The sessions of a project, newest first. Iterating asks for page after page; each iteration begins anew. */
export interface SessionList extends AsyncIterable<Session> {
  /** The same, page by page. */
  pages(): AsyncGenerator<SessionPage, void, undefined>;
}

/** See `SessionsClient.list`. */
export function listSessions(transport: Transport, options: ListOptions): SessionList {
  return {
    pages: () => pagesOf(transport, options),
    async *[Symbol.asyncIterator]() {
      for await (const page of pagesOf(transport, options)) yield* page.sessions;
    },
  };
}

async function* pagesOf(transport: Transport, options: ListOptions): AsyncGenerator<SessionPage, void, undefined> {
  const { signal, timeoutMs } = options;
  let pageToken = options.pageToken ?? "";
  do {
    const request = create(ListSessionsRequestSchema, { project: options.project ?? "", pageSize: options.pageSize ?? 0, pageToken });
    const page = await transport.unary(Sessions.method.listSessions, request, { signal, timeoutMs });
    yield page;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}
