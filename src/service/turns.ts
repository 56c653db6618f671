/** The Turns service: messages for a turn that runs. */

import { create } from "@bufbuild/protobuf";
import { sessionUidOf } from "../base/ids.ts";
import type { Controller } from "../controller/index.ts";
import { SteerResponseSchema } from "../gen/holdfast/v1/turns_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import type { Authorizer } from "../spi/index.ts";
import { accessSession } from "./access.ts";
import type { TurnsService } from "./contract.ts";

/** What the service is made of. */
export interface TurnsServiceOptions {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly authorizer: Authorizer;
}

/** Creates the handlers of `holdfast.v1.Turns`. Whoever may start a turn of a session may speak into one. */
export function createTurnsService(options: TurnsServiceOptions): TurnsService {
  return {
    async steer({ session, message }, context) {
      const uid = sessionUidOf(session, "session");
      await accessSession(options, "session.exec", uid, "session", context);
      const steering = { session: uid, message, from: context.caller.identity };
      const { executionId, seq } = await options.controller.steer(steering, { signal: context.signal });
      return create(SteerResponseSchema, { executionId, seq: BigInt(seq) });
    },
  };
}
