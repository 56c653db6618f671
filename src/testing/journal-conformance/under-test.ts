/** A store on a clock that stands still until a case moves it. */

import type { JournalStore } from "../../journal/index.ts";
import { VirtualClock } from "../ports.ts";
import type { StoreUnderTest } from "./conformance.ts";

/** Opens a store on the given clock; called again to reopen it. */
export type OpenStore = (clock: VirtualClock) => Promise<JournalStore>;

/** What else a store needs. */
export interface UnderTestOptions {
  /** Whether opening again finds what was there. */
  readonly survives: boolean;
  /** Called once the store is closed for good. */
  readonly cleanUp?: (() => void) | undefined;
}

/** A store under test that `open` opens. */
export async function storeUnderTest(open: OpenStore, { survives, cleanUp }: UnderTestOptions): Promise<StoreUnderTest> {
  const clock = new VirtualClock();
  let store = await open(clock);
  return {
    get store() {
      return store;
    },
    elapse: async (ms) => clock.advance(ms),
    reopen: survives
      ? async () => {
          await store[Symbol.asyncDispose]();
          store = await open(clock);
        }
      : undefined,
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]();
      cleanUp?.();
    },
  };
}
