/** `roz.v1.AgentService` for callers: conversations over streams, and the workers of a task. */

import type { TeamEvent } from "../gen/roz/v1/agent_pb.ts";
import { AgentSession, type AgentSessionOptions } from "./agent-session.ts";
import { AgentStream, type AgentStreamOptions } from "./agent-stream.ts";
import { watchTeam, type WatchTeamOptions } from "./team-events.ts";
import type { Transport } from "./transport.ts";

/** The calls of AgentService. They need a transport with streams in both directions, except `watchTeam`; without: UNIMPLEMENTED. */
export class AgentClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** A conversation that survives its connections: what was missed comes after a reconnect, what was given is not lost. */
  session(options: AgentSessionOptions = {}): AgentSession {
    return new AgentSession(this.#transport, options);
  }

  /** One stream, as the protocol has it. It is open at once, and over with its connection. */
  stream(options: AgentStreamOptions = {}): AgentStream {
    return new AgentStream(this.#transport, options);
  }

  /**
   * What happens to the workers of a task: what has happened first, then live, until the team has ended. A lost connection is made anew without
   * losing or repeating an event of a worker. NOT_FOUND for an unknown task.
   */
  watchTeam(taskId: string, options: WatchTeamOptions = {}): AsyncGenerator<TeamEvent, void, undefined> {
    return watchTeam(this.#transport, taskId, options);
  }
}
