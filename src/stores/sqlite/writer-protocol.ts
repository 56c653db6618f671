/** What the store's thread and the writer's thread say to each other. */

import type { WriterOptions } from "./connection.ts";
import type { StoreFault } from "./faults.ts";
import type { PackedList } from "./packed-list.ts";

/** To the writer's thread. Each but `stage` is answered once, in order; a `stage` is followed by the `write` it belongs to. */
export type WriterRequest =
  | { readonly kind: "stage"; readonly list: PackedList }
  | { readonly kind: "write"; readonly list: PackedList }
  | { readonly kind: "close" };

/** From the writer's thread. The first answer is to its start: whether it could open the file. */
export type WriterResponse = { readonly kind: "done" } | { readonly kind: "failed"; readonly fault: StoreFault };

/** What the thread is started with. */
export type WriterStart = WriterOptions;
