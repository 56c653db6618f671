/** Harnesses at addresses, without a network: what a host reaches through its registry, changed by a test while the host runs. */

import { HoldfastError } from "../base/errors.ts";
import { createHarnessCatalog, REMOTE_RUNTIME } from "../placement/index.ts";
import type { Harness, HarnessEntry, RegisteredHarness } from "../spi/index.ts";
import { testHarness } from "./host.ts";

/** What answers at addresses. */
export class DialledHarnesses {
  readonly #harnesses = new Map<string, Harness>();
  /** How often any address was dialled. */
  dialled = 0;

  /** From now on `harness` answers at `address`. */
  serve(address: string, harness: Harness): void {
    this.#harnesses.set(address, harness);
  }

  /** The entry of a registration: every use of it dials. Its descriptor's id is compared with the registered one. */
  readonly entryFor = (row: RegisteredHarness, isOpen: () => boolean): HarnessEntry => {
    const { placement, descriptorId } = row.spec;
    const address = placement.case === "remote" ? placement.value.address : "";
    const inProcess = createHarnessCatalog({ [row.name]: testHarness(async () => undefined) }).find(row.name);
    if (inProcess === undefined) throw new Error("the catalog has not what it was made of");
    return {
      ...inProcess,
      source: "registered",
      runtime: REMOTE_RUNTIME,
      get open() {
        return isOpen();
      },
      describe: async (options) => {
        const descriptor = await this.#dial(address).describe(options);
        if (descriptorId === "" || descriptor.id === descriptorId) return descriptor;
        throw new HoldfastError("failed_precondition", "harness: its descriptor has another id", { field: "harness" });
      },
      attach: async () => ({ harness: this.#dial(address) }),
      rehearse: async () => ({ harness: this.#dial(address), [Symbol.asyncDispose]: async () => undefined }),
    };
  };

  #dial(address: string): Harness {
    this.dialled++;
    const harness = this.#harnesses.get(address);
    if (harness === undefined) throw new HoldfastError("unavailable", "harness: it cannot be reached");
    return harness;
  }
}
