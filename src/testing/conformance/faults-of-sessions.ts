/** Planted faults of sessions as resources: creating, reading, listing, deleting, and errors. */

import { HoldfastError } from "../../base/index.ts";
import { DeletionState, ExecState, type Session } from "../../gen/agentsessions/v1/session_pb.ts";
import { instead, withState, type PlantedFault } from "./planted-faults.ts";

export const SESSION_FAULTS: readonly PlantedFault[] = [
  {
    name: "a new session counts as completed",
    caughtBy: ["session/new-session"],
    says: /exec_state: expected 4|exec_state: expected 1, found 4/,
    plant: () => ({ CreateSession: async (request, real) => withState(await real(request), ExecState.EXEC_COMPLETED) }),
  },
  {
    name: "labels are lost",
    caughtBy: ["session/keeps-what-its-creator-decides"],
    says: /labels.*expected .*blue/,
    plant: () => ({ GetSession: async (request, real) => Object.assign(await real(request), { labels: {} }) }),
  },
  {
    name: "output-only fields are passed over in silence",
    caughtBy: ["session/output-only-fields"],
    says: /CreateSession with uid set: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({
      CreateSession: async (request, real) => {
        const { session } = request;
        if (session?.metadata !== undefined) session.metadata.uid = "";
        return real(request);
      },
    }),
  },
  {
    name: "a name can be taken twice",
    caughtBy: ["session/taken-name"],
    says: /expected ALREADY_EXISTS, got OK/,
    plant: () => ({
      CreateSession: (request, real) =>
        instead("already_exists", real(request), () => {
          request.session!.metadata!.name = "";
          return real(request);
        }),
    }),
  },
  {
    name: "an unknown harness stands for the default one",
    caughtBy: ["session/unknown-harness"],
    says: /expected INVALID_ARGUMENT, got OK/,
    plant: () => ({
      CreateSession: (request, real) =>
        instead("invalid_argument", real(request), () => {
          request.session!.harness = "";
          return real(request);
        }),
    }),
  },
  {
    name: "a malformed uid is just another unknown one",
    caughtBy: ["session/malformed-uid"],
    says: /GetSession with an empty uid: expected INVALID_ARGUMENT, got NOT_FOUND/,
    plant: () => ({
      GetSession: (request, real) =>
        instead("invalid_argument", real(request), () => {
          throw new HoldfastError("not_found", "uid: no session has this uid");
        }),
    }),
  },
  {
    name: "an unknown session is an internal error",
    caughtBy: ["session/unknown-uid"],
    says: /of an unknown session: expected NOT_FOUND, got INTERNAL/,
    plant: () => ({ error: (error) => (error.code === "not_found" ? new HoldfastError("internal", "it broke") : error) }),
  },
  {
    name: "errors name nothing",
    caughtBy: ["session/output-only-fields", "list/refusals", "fork/refusals", "replay/negative-ends"],
    says: /expected a message that names uid, got INVALID_ARGUMENT \(bad request\)/,
    plant: () => ({ error: ({ code }) => new HoldfastError(code, "bad request") }),
  },
  {
    name: "errors repeat the request",
    caughtBy: ["session/errors-tell-nothing"],
    says: /repeats the request/,
    plant: () => ({
      error: (error, request) => {
        const text = JSON.stringify(request, (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
        return new HoldfastError(error.code, `${error.message} in ${text}`, { field: error.field });
      },
    }),
  },
];

export const LIST_FAULTS: readonly PlantedFault[] = [
  {
    name: "listings are oldest first",
    caughtBy: ["list/order-and-pages"],
    says: /expected create_time descending/,
    plant: () => ({
      ListSessions: async (request, real) => {
        const answer = await real(request);
        answer.sessions.reverse();
        return answer;
      },
    }),
  },
  {
    name: "pages are counted from the newest session of the moment",
    caughtBy: ["list/stable-while-created"],
    says: /repeated sessions: expected 0/,
    plant: () => ({
      ListSessions: async (request, real) => {
        const offset = request.pageToken === "" ? 0 : Number(request.pageToken);
        const size = request.pageSize;
        const answer = await real({ ...request, pageToken: "", pageSize: 500 });
        const sessions = answer.sessions.slice(offset, offset + size);
        const isLast = offset + size >= answer.sessions.length || offset > 50;
        return { ...answer, sessions, nextPageToken: isLast ? "" : `${offset + size}` };
      },
    }),
  },
  {
    name: "a page has ten sessions when nobody says how many",
    caughtBy: ["list/page-size"],
    says: /page_size 0.*expected 50, found 10/,
    plant: () => ({ ListSessions: (request, real) => real(request.pageSize === 0 ? { ...request, pageSize: 10 } : request) }),
  },
  {
    name: "a negative page size is the default",
    caughtBy: ["list/refusals"],
    says: /page_size -1: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({ ListSessions: (request, real) => real(request.pageSize < 0 ? { ...request, pageSize: 0 } : request) }),
  },
  {
    name: "a token that cannot be read is the first page",
    caughtBy: ["list/refusals"],
    says: /page_token not a token…: expected INVALID_ARGUMENT, got OK/,
    plant: () => ({
      ListSessions: (request, real) =>
        request.pageSize < 0 ? real(request) : instead("invalid_argument", real(request), () => real({ ...request, pageToken: "" })),
    }),
  },
  {
    name: "a project lists those whose names begin with it",
    caughtBy: ["list/exact-project"],
    says: /ListSessions of a project/,
    plant: () => ({
      ListSessions: async (request, real) => {
        const own = await real(request);
        const more = await real({ ...request, project: `${request.project}-2` });
        return { ...own, sessions: [...own.sessions, ...more.sessions] };
      },
    }),
  },
  {
    name: "deleted sessions are listed",
    caughtBy: ["list/forks-not-deleted", "delete/unlisted-but-readable"],
    says: /ListSessions after a fork and a deletion/,
    plant: () => {
      const gone: Session[] = [];
      return {
        DeleteSession: async (request, real) => {
          const session = await real(request);
          gone.push(session);
          return session;
        },
        ListSessions: async (request, real) => {
          const answer = await real(request);
          const own = gone.filter(({ metadata }) => metadata?.project === request.project);
          return { ...answer, sessions: [...answer.sessions, ...own] };
        },
      };
    },
  },
];

export const DELETE_FAULTS: readonly PlantedFault[] = [
  {
    name: "a deletion cannot be repeated",
    caughtBy: ["delete/intent"],
    says: /NOT_FOUND/,
    plant: () => {
      const gone = new Set<string>();
      return {
        DeleteSession: async (request, real) => {
          if (gone.has(request.uid)) throw new HoldfastError("not_found", "uid: no session has this uid");
          gone.add(request.uid);
          return real(request);
        },
      };
    },
  },
  {
    name: "a deleted session looks alive",
    caughtBy: ["delete/unlisted-but-readable"],
    says: /deletion_state: expected 2, found 1/,
    plant: () => ({
      GetSession: async (request, real) => Object.assign(await real(request), { deletionState: DeletionState.DELETION_ACTIVE }),
    }),
  },
  {
    name: "a deleted session says yes to everything",
    caughtBy: ["delete/no-more"],
    says: /Suspend of a deleted session: expected FAILED_PRECONDITION, got OK/,
    plant: () => {
      let last: Session | undefined;
      return {
        DeleteSession: async (request, real) => (last = await real(request)),
        Suspend: (request, real) => instead("failed_precondition", real(request), () => last!),
      };
    },
  },
  {
    name: "a turn whose session is deleted ends with an error",
    caughtBy: ["delete/running"],
    says: /how its stream ended: expected nothing, found "cancelled"/,
    plant: () => ({
      async *Exec(request, real) {
        yield* real(request);
        throw new HoldfastError("cancelled", "session: it was deleted");
      },
    }),
  },
];
