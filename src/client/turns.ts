/** `holdfast.v1.Turns` for callers: messages for a turn that runs. */

import { create } from "@bufbuild/protobuf";
import { SteerRequestSchema, Turns, type SteerResponse } from "../gen/holdfast/v1/turns_pb.ts";
import { inputMessage, type ExecInput } from "./exec-request.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** The calls of Turns. Each rejects with a HoldfastError that has the server's code, message and field. */
export class TurnsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Gives a message to the turn that runs; resolves with where it is, once it is on record. FAILED_PRECONDITION where no turn runs and where
   * it ends without asking. Giving the call up takes the message back, unless it was handed out already.
   */
  async steer(session: string, input: ExecInput, options: CallOptions = {}): Promise<SteerResponse> {
    const request = create(SteerRequestSchema, { session, message: inputMessage(input) });
    return this.#transport.unary(Turns.method.steer, request, options);
  }
}
