/**
 * The harnesses of a host by name, and those that live in its own process.
 *
 * Invariants: a name means one harness for as long as the host runs; a descriptor is asked for once and kept, and one that could not
 * be had is asked for again by the next call.
 */

import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../base/errors.ts";
import { HarnessDescriptorSchema } from "../gen/agentsessions/v1/harness_pb.ts";
import { RuntimeCapabilitiesSchema, SnapshotRefSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { Harness, HarnessCatalog, HarnessEntry } from "../spi/index.ts";
import { placedDescriptor } from "./can-place.ts";
import { Described } from "./described.ts";

/**
 * A catalog of `harnesses` in this process by their names, and of `placed` ones, which live elsewhere. Throws INVALID_ARGUMENT for an
 * empty name and for one that is given twice.
 */
export function createHarnessCatalog(harnesses: Readonly<Record<string, Harness>>, placed: readonly HarnessEntry[] = []): HarnessCatalog {
  const entries = new Map<string, HarnessEntry>(placed.map((entry) => [entry.name, entry]));
  for (const [name, harness] of Object.entries(harnesses)) {
    if (name === "") throw invalidArgument("harnesses", "every harness must have a name");
    if (entries.has(name)) throw invalidArgument("harnesses", `${name} must be the name of one harness`);
    if (typeof harness.describe !== "function" || typeof harness.run !== "function") {
      throw invalidArgument("harnesses", `${name} must have the functions describe and run`);
    }
    entries.set(name, entryOf(name, harness));
  }
  return { find: (name) => entries.get(name), names: () => [...entries.keys()] };
}

/** The runtime of a harness in this process: it captures nothing. */
const IN_PROCESS = { name: "local", capabilities: create(RuntimeCapabilitiesSchema) };

function entryOf(name: string, harness: Harness): HarnessEntry {
  // A harness in plain JavaScript may leave fields out; what is absent has its default.
  const whole = async () => create(HarnessDescriptorSchema, await harness.describe());
  const described = new Described(async () => placedDescriptor(await whole(), IN_PROCESS));
  return {
    name,
    source: "static",
    open: true,
    runtime: IN_PROCESS,
    sandboxed: false,
    fenceOf: () => undefined,
    wake: async () => undefined,
    describe: (options) => described.get(options),
    attach: async ({ signal }) => {
      signal.throwIfAborted();
      return { harness };
    },
    rehearse: async () => ({ harness, [Symbol.asyncDispose]: async () => undefined }),
    settle: async () => undefined,
    // It holds nothing that the journal does not: the session itself is what a restore needs.
    suspend: async ({ sessionUid }) => ({ snapshot: create(SnapshotRefSchema, { local: sessionUid }) }),
    shared: async () => ({ kind: "none" }),
    discard: async () => undefined,
    release: async () => undefined,
  };
}
