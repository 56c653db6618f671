/** The feedback that clients gave, for whoever answers for a session. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "../../base/errors.ts";
import { sessionUidOf } from "../../base/ids.ts";
import { ListFeedbackResponseSchema } from "../../gen/holdfast/v1/feedback_pb.ts";
import type { NoteStore } from "../../spi/index.ts";
import { accessSession, type SessionAccess } from "../access.ts";
import type { FeedbackService } from "../contract.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "../limits.ts";
import { pageSizeOf } from "../list-request.ts";
import { readFeedback } from "./client-notes.ts";

/** What the service is made of. */
export interface FeedbackServiceOptions extends SessionAccess {
  readonly notes: NoteStore;
  readonly limits?: Partial<ServiceLimits> | undefined;
}

/** Creates the handler of `holdfast.v1.Feedback`. */
export function createFeedbackService(options: FeedbackServiceOptions): FeedbackService {
  const limits = { ...SERVICE_LIMITS, ...options.limits };
  return {
    async listFeedback({ session, after, pageSize }, context) {
      if (after < 0n || after > Number.MAX_SAFE_INTEGER) throw invalidArgument("after", "must be the place of an entry, or 0");
      const limit = pageSizeOf(pageSize, limits, "entries");
      const uid = sessionUidOf(session, "session");
      await accessSession(options, "session.read", uid, "session", context);
      const page = await readFeedback(options.notes, uid, { after: Number(after), limit });
      const entries = page.map(({ place, feedback: { messageId, rating, timeMs, principal } }) => ({
        place: BigInt(place),
        messageId,
        rating,
        time: timestampFromMs(Number(timeMs)),
        principal,
      }));
      return create(ListFeedbackResponseSchema, { entries });
    },
  };
}
