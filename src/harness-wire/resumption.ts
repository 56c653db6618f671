/**
 * What a host must remember of a line to go on with it after the harness's memory was brought back elsewhere: the harness believes that it
 * is on the line that it was on, and answers no second hello.
 *
 * Invariant: a line is resumed only from a moment at which no exchange was open and no byte was under way.
 */

/** A line at rest; plain values that can be stored. */
export interface LineResumption {
  /** The number of the last exchange. Those that follow have greater ones. */
  readonly lastExchange: number;
  /** What the harness said in its hello: whether it pulls histories, and the most bytes that it takes in a frame. */
  readonly pullsHistory: boolean;
  readonly harnessTakesBytesMax: number;
  /** The most bytes of a frame that the harness was told it may send. */
  readonly hostTakesBytesMax: number;
}

/** The numbers of exchanges are 32 bits wide on the wire. */
const EXCHANGE_MAX = 2 ** 32 - 1;

/** What was stored, checked; undefined for what is no resumption. */
export function lineResumptionOf(stored: unknown): LineResumption | undefined {
  if (typeof stored !== "object" || stored === null) return undefined;
  const { lastExchange, pullsHistory, harnessTakesBytesMax, hostTakesBytesMax } = stored as Partial<Record<keyof LineResumption, unknown>>;
  if (typeof pullsHistory !== "boolean") return undefined;
  if (!isCount(lastExchange) || !isCount(harnessTakesBytesMax) || !isCount(hostTakesBytesMax)) return undefined;
  return { lastExchange, pullsHistory, harnessTakesBytesMax, hostTakesBytesMax };
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= EXCHANGE_MAX;
}
