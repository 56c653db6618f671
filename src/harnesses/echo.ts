/**
 * The echo harness: one model call with this turn's inputs and nothing else, then its usage. It reads no history, so a turn
 * costs the same however long the session is.
 */

import { create } from "@bufbuild/protobuf";
import { CapabilitiesSchema, HarnessDescriptorSchema, Resumability } from "../gen/agentsessions/v1/harness_pb.ts";
import type { Harness } from "../spi/index.ts";
import { recordUsage } from "./usage.ts";

/** The model that the harness asks where the session has none. */
const ECHO_MODEL = "echo";

/** The echo harness; it takes no config and passes over what it is given. */
export function createEchoHarness(): Harness {
  const descriptor = create(HarnessDescriptorSchema, {
    id: "echo",
    version: "1",
    models: [ECHO_MODEL],
    tools: [],
    capabilities: create(CapabilitiesSchema, {
      resumability: Resumability.STATELESS_REPLAY,
      forkSafe: true,
      streaming: true,
    }),
  });
  return {
    readsOnly: true,
    describe: async () => descriptor,
    run: async (start, sink, { signal }) => {
      const response = await sink.model({ model: start.model || ECHO_MODEL, messages: start.inputs }, { signal });
      await recordUsage(sink, response, signal);
    },
  };
}
