/** Listing sessions. */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  Sessions,
  type ListSessionsRequestSchema,
  type ListSessionsResponse,
  type Session,
} from "../../gen/agentsessions/v1/session_pb.ts";
import { uidOf, type Bench } from "./bench.ts";
import type { CaseTable } from "./contract.ts";
import { must, mustEqual, mustRefuse } from "./expect.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";

type ListInit = Exclude<MessageInitShape<typeof ListSessionsRequestSchema>, undefined>;

/** Sessions that are made at once. */
const AT_ONCE = 32;

function page(bench: Bench, request: ListInit = {}): Promise<ListSessionsResponse> {
  return bench.call(Sessions.method.listSessions, { project: bench.project, ...request });
}

/** The whole listing, page by page; between pages something else may happen. */
async function listing(bench: Bench, pageSize: number, between: () => Promise<unknown> = async () => undefined): Promise<Session[]> {
  const sessions: Session[] = [];
  let pageToken = "";
  do {
    const answer = await page(bench, { pageSize, pageToken });
    must(answer.sessions.length <= pageSize, `ListSessions with page_size ${pageSize}: got ${answer.sessions.length} sessions`);
    must(answer.nextPageToken === "" || answer.nextPageToken !== pageToken, "ListSessions: the same next_page_token came twice");
    sessions.push(...answer.sessions);
    pageToken = answer.nextPageToken;
    await between();
  } while (pageToken !== "");
  return sessions;
}

async function many(bench: Bench, count: number): Promise<readonly string[]> {
  const uids: string[] = [];
  while (uids.length < count) {
    const batch = Array.from({ length: Math.min(AT_ONCE, count - uids.length) }, () => bench.create());
    uids.push(...(await Promise.all(batch)).map(uidOf));
  }
  return uids;
}

function mustBeOrdered(sessions: readonly Session[]): void {
  const keys = sessions.map((session) => [createMs(session), uidOf(session)] as const);
  for (const [index, [time, uid]] of keys.entries()) {
    const [timeBefore, uidBefore] = keys[index - 1] ?? [Infinity, ""];
    const inOrder = timeBefore > time || (timeBefore === time && uidBefore < uid);
    must(inOrder, `ListSessions: expected create_time descending, then uid ascending, but ${uid} comes after ${uidBefore}`);
  }
}

function createMs({ metadata }: Session): number {
  must(metadata?.createTime !== undefined, "ListSessions: expected metadata.create_time, found none");
  return timestampMs(metadata.createTime);
}

export const LIST_CASES: CaseTable = {
  "order-and-pages": {
    promise: "ListSessions is newest first by (create_time desc, uid asc), by keyset: no session is missed or repeated over pages.",
    run: async (bench) => {
      const made = await many(bench, 7);
      for (const pageSize of [1, 3, 7, 50]) {
        const sessions = await listing(bench, pageSize);
        mustBeOrdered(sessions);
        mustEqual(`ListSessions in pages of ${pageSize}: the sessions of the project`, sessions.map(uidOf).toSorted(), made.toSorted());
      }
    },
  },

  "stable-while-created": {
    promise: "A listing is stable while sessions are created.",
    run: async (bench) => {
      const before = await many(bench, 6);
      const seen = (await listing(bench, 2, () => bench.create())).map(uidOf);
      mustEqual("a listing while sessions are created: repeated sessions", seen.length - new Set(seen).size, 0);
      mustEqual("a listing while sessions are created: the sessions before it", seen.filter((uid) => before.includes(uid)).length, 6);
    },
  },

  "page-size": {
    promise: "page_size 0 → 50, above 500 → 500.",
    run: async (bench) => {
      await many(bench, 501);
      mustEqual("ListSessions with page_size 0: the number of sessions", (await page(bench)).sessions.length, 50);
      mustEqual("ListSessions with page_size 501: the number of sessions", (await page(bench, { pageSize: 501 })).sessions.length, 500);
      mustEqual("ListSessions with page_size 2: the number of sessions", (await page(bench, { pageSize: 2 })).sessions.length, 2);
    },
  },

  refusals: {
    promise: "A negative page_size and a token that cannot be read are INVALID_ARGUMENT.",
    run: async (bench) => {
      await many(bench, 2);
      await mustRefuse("ListSessions with page_size -1", page(bench, { pageSize: -1 }), "invalid_argument", "page_size");
      const { nextPageToken } = await page(bench, { pageSize: 1 });
      for (const pageToken of ["not a token", "AAAA", `${nextPageToken}x`]) {
        await mustRefuse(
          `ListSessions with the page_token ${pageToken.slice(0, 12)}…`,
          page(bench, { pageToken }),
          "invalid_argument",
          "page_token",
        );
      }
    },
  },

  "exact-project": {
    promise: "The project is exact: no other project's sessions are listed, nor those of projects that begin alike.",
    run: async (bench) => {
      const own = uidOf(await bench.create());
      await bench.create({ metadata: { project: `${bench.project}-2` } });
      mustEqual("ListSessions of a project", (await page(bench)).sessions.map(uidOf), [own]);
      const [prefix] = [bench.project.slice(0, -1)];
      mustEqual("ListSessions of a project that nobody used", (await page(bench, { project: prefix })).sessions.length, 0);
    },
  },

  "forks-not-deleted": {
    promise: "Forks are listed; deleted sessions are not.",
    run: async (bench) => {
      const parent = await bench.withTurns("hello");
      const { children } = await bench.call(Sessions.method.fork, { session: parent, count: 1 });
      const child = uidOf(children[0]);
      bench.adopt(child);
      const gone = uidOf(await bench.create());
      await bench.call(Sessions.method.deleteSession, { uid: gone });
      mustEqual("ListSessions after a fork and a deletion", (await page(bench)).sessions.map(uidOf).toSorted(), [parent, child].toSorted());
    },
  },
};
