/**
 * The counter harness: it keeps a count in memory and nowhere else, adds one in each turn and outputs it. What a runtime does with memory
 * shows in what it says.
 *
 * Of what it imports nothing but an enum is left in a bundle, so that a sandbox needs no protobuf library for it.
 */

import { Resumability } from "../gen/agentsessions/v1/harness_pb.ts";
import type { Harness, HarnessDescriptor } from "../spi/index.ts";

/** A counter for one session; it begins with 1. */
export function createCounterHarness(): Harness {
  let count = 0;
  return {
    describe: async () => descriptorOf("counter"),
    run: async (_start, sink, { signal }) => {
      count += 1;
      await sink.output(String(count), { signal });
    },
  };
}

/** The descriptor of a harness that lives in its memory and calls nothing. */
export function descriptorOf(id: string): HarnessDescriptor {
  return {
    $typeName: "agentsessions.v1.HarnessDescriptor",
    id,
    version: "1",
    models: [],
    tools: [],
    capabilities: {
      $typeName: "agentsessions.v1.Capabilities",
      resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT,
      forkSafe: true,
      streaming: false,
      requiresGpu: false,
      reasoningReplay: false,
    },
  };
}
