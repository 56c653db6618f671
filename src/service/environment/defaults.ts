/** What an environment has where its author said nothing. */

import { DEFAULT_ENVIRONMENT, type Environment } from "../../spi/index.ts";

/** The harness whose turns can have tools of a client; any other gets an empty config. */
export const AGENT_HARNESS = "agent";

/**
 * The environment of an id of which nothing else is said: the built-in agent on the server's default model, with all of the host's tools,
 * each of which counts as one that acts on the world. Without an id it is the one that every server has.
 */
export function plainEnvironment(id: string = DEFAULT_ENVIRONMENT): Environment {
  return {
    id,
    description: "",
    harness: AGENT_HARNESS,
    agent: {},
    model: "",
    models: {},
    permissions: [],
    tools: { pure: [], physical: ["*"] },
    hosts: {},
    presence: { physical: "full", pure: "mini", idle: "hidden" },
  };
}
