/**
 * A list of statements in the form in which it crosses to the writer's thread.
 *
 * All bytes go in one block of memory that is handed over, not copied again. A message would copy the whole memory that a view
 * looks into, once for each view.
 */

import type { WriteList, WriteValue } from "./statements.ts";

/** A packed list. `true` in `values` stands for bytes: the next of `byteCounts`, from the front of `bytes`. */
export interface PackedList {
  readonly statements: readonly number[];
  readonly values: readonly (Exclude<WriteValue, Uint8Array> | true)[];
  readonly byteCounts: readonly number[];
  readonly bytes: ArrayBuffer;
}

export function packList({ statements, values }: WriteList): PackedList {
  const byteCounts: number[] = [];
  let total = 0;
  for (const value of values) {
    if (!(value instanceof Uint8Array)) continue;
    byteCounts.push(value.length);
    total += value.length;
  }
  const block = new Uint8Array(total);
  let at = 0;
  const packed = values.map((value) => {
    if (!(value instanceof Uint8Array)) return value;
    block.set(value, at);
    at += value.length;
    return true;
  });
  return { statements, values: packed, byteCounts, bytes: block.buffer };
}

export function unpackList({ statements, values, byteCounts, bytes }: PackedList): WriteList {
  let at = 0;
  let next = 0;
  const unpacked = values.map((value) => {
    if (value !== true) return value;
    const view = new Uint8Array(bytes, at, byteCounts[next]);
    at += view.length;
    next++;
    return view;
  });
  return { statements: [...statements], values: unpacked };
}
