/**
 * The harnesses that live in the host's own process, by name.
 *
 * Invariants: a name means one harness for as long as the host runs; a descriptor is asked for once and kept, and one that could not
 * be had is asked for again by the next call.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import { HarnessDescriptorSchema } from "../gen/agentsessions/v1/harness_pb.ts";
import type { CallOptions, Harness, HarnessCatalog, HarnessDescriptor, HarnessEntry } from "../spi/index.ts";

/** A catalog of `harnesses` by their names. Throws INVALID_ARGUMENT for an empty name. */
export function createHarnessCatalog(harnesses: Readonly<Record<string, Harness>>): HarnessCatalog {
  const entries = new Map<string, HarnessEntry>();
  for (const [name, harness] of Object.entries(harnesses)) {
    if (name === "") throw invalidArgument("harnesses", "every harness must have a name");
    if (typeof harness.describe !== "function" || typeof harness.run !== "function") {
      throw invalidArgument("harnesses", `${name} must have the functions describe and run`);
    }
    entries.set(name, entryOf(name, harness));
  }
  return { find: (name) => entries.get(name) };
}

function entryOf(name: string, harness: Harness): HarnessEntry {
  let descriptor: Promise<HarnessDescriptor> | undefined;
  const ask = (): Promise<HarnessDescriptor> => {
    const asked = whole(harness);
    descriptor = asked;
    asked.catch(() => {
      if (descriptor === asked) descriptor = undefined;
    });
    return asked;
  };
  return {
    name,
    source: "static",
    open: true,
    describe: (options) => untilAborted(descriptor ?? ask(), options),
    attach: async ({ signal }) => {
      signal.throwIfAborted();
      return { harness };
    },
  };
}

/** A harness in plain JavaScript may leave fields out; what is absent has its default. */
async function whole(harness: Harness): Promise<HarnessDescriptor> {
  return create(HarnessDescriptorSchema, await harness.describe());
}

/** The descriptor is everybody's, so a caller that gives up leaves the question standing. */
async function untilAborted<T>(shared: Promise<T>, { signal }: CallOptions = {}): Promise<T> {
  if (signal === undefined) return shared;
  signal.throwIfAborted();
  let onAbort: () => void = () => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(reasonOf(signal));
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([shared, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new HoldfastError("cancelled", "the caller gave up");
}
