/**
 * Watching the workers of a task.
 *
 * Invariant: the events of each worker come in order, each once, whatever happens to the connection. A watch that is made anew is told
 * everything from the start; of each worker as many events are passed over as were handed out.
 */

import { create } from "@bufbuild/protobuf";
import { AgentService, WatchTeamRequestSchema, type TeamEvent } from "../gen/roz/v1/agent_pb.ts";
import { Attempts, reconnectPolicy, type ReconnectOptions } from "./reconnect.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** How a watch is kept up. */
export interface WatchTeamOptions extends CallOptions {
  /** What happens when the connection is lost; `false`: the watch rejects with UNAVAILABLE. */
  readonly reconnect?: ReconnectOptions | false | undefined;
}

/** See `AgentClient.watchTeam`. */
export async function* watchTeam(
  transport: Transport,
  taskId: string,
  { reconnect, ...options }: WatchTeamOptions,
): AsyncGenerator<TeamEvent, void, undefined> {
  const attempts = new Attempts(reconnectPolicy(reconnect), transport.ports);
  const handedOut = new Map<string, number>();
  for (;;) {
    const told = new Map<string, number>();
    try {
      for await (const event of transport.stream(AgentService.method.watchTeam, create(WatchTeamRequestSchema, { taskId }), options)) {
        attempts.progress();
        const worker = event.event.value?.workerId ?? "";
        const place = (told.get(worker) ?? 0) + 1;
        told.set(worker, place);
        if (place <= (handedOut.get(worker) ?? 0)) continue;
        handedOut.set(worker, place);
        yield event;
      }
      return;
    } catch (error) {
      await attempts.afterLoss(error, options.signal);
    }
  }
}
