/**
 * Requests that are still arriving.
 *
 * Invariant: what a door keeps of requests that are not whole is bounded, over all its connections. When one byte too many has come,
 * the request that began first is refused: senders that stall are the oldest, and a request that comes without a pause is served
 * whatever they do.
 */

import { HoldfastError } from "../base/errors.ts";

/** What a piece of a request costs while it is kept, beside its own bytes. */
const PIECE_BYTES = 256;

/** One request that is arriving. */
export interface Arrival {
  /** Takes a piece of `bytes` into account. It may refuse requests, this one too. */
  add(bytes: number): void;
  /** The request is whole, or nobody waits for it any more. */
  end(): void;
}

/** The requests of a door that are arriving. */
export class Arrivals {
  readonly #bytesMax: number;
  /** From the oldest to the newest, with what each keeps. */
  readonly #open = new Map<Arrival, { bytes: number; readonly refuse: (error: HoldfastError) => void }>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes that are kept now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A request begins. `refuse` is called with RESOURCE_EXHAUSTED when it must make room; it has ended then. */
  begin(refuse: (error: HoldfastError) => void): Arrival {
    const arrival: Arrival = { add: (bytes) => this.#add(arrival, bytes), end: () => this.#end(arrival) };
    this.#open.set(arrival, { bytes: 0, refuse });
    return arrival;
  }

  #add(arrival: Arrival, bytes: number): void {
    const kept = this.#open.get(arrival);
    if (kept === undefined) return;
    kept.bytes += bytes + PIECE_BYTES;
    this.#bytes += bytes + PIECE_BYTES;
    while (this.#bytes > this.#bytesMax) this.#refuseOldest();
  }

  #refuseOldest(): void {
    for (const [arrival, { bytes, refuse }] of this.#open) {
      if (bytes === 0) continue;
      this.#end(arrival);
      refuse(new HoldfastError("resource_exhausted", "request: too many bytes of requests are arriving at once; send it again later"));
      return;
    }
  }

  #end(arrival: Arrival): void {
    this.#bytes -= this.#open.get(arrival)?.bytes ?? 0;
    this.#open.delete(arrival);
  }
}
