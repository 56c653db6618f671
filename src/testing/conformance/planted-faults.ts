/** Servers that break one promise each: what they do, which case has to catch it, and what that case has to say. */

import { clone } from "@bufbuild/protobuf";
import { HoldfastError, type ErrorCode } from "../../base/index.ts";
import { LogRecordSchema, type LogRecord } from "../../gen/agentsessions/v1/common_pb.ts";
import { ComputeState, type ExecState, type Session } from "../../gen/agentsessions/v1/session_pb.ts";
import type { Fault } from "./faulty-transport.ts";
import { wordOf } from "./words.ts";

/** A server that breaks a promise. */
export interface PlantedFault {
  readonly name: string;
  /** The cases that must fail. */
  readonly caughtBy: readonly string[];
  /** What the first of them must say. */
  readonly says: RegExp;
  /** The fault anew: some remember what they did. */
  readonly plant: () => Fault;
}

/** A copy of a record that `change` changes. Its hash stays what it was. */
export function changed(record: LogRecord, change: (record: LogRecord) => void): LogRecord {
  const copy = clone(LogRecordSchema, record);
  change(copy);
  return copy;
}

/** Another error in the place of one with this code. */
export async function instead<T>(code: ErrorCode, call: Promise<T>, then: () => T | Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof HoldfastError && error.code === code) return then();
    throw error;
  }
}

/** The items of a stream, and then its error's end as if it were a good one, when it has this code. */
export async function* swallowing<T>(code: ErrorCode, items: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* items;
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== code) throw error;
  }
}

export async function* mapped<T>(items: AsyncIterable<T>, map: (item: T, index: number) => readonly T[]): AsyncGenerator<T> {
  let index = 0;
  for await (const item of items) yield* map(item, index++);
}

/** The items with the first two that `is` picks in exchanged places. */
export async function* swapped<T>(items: AsyncIterable<T>, is: (item: T) => boolean): AsyncGenerator<T> {
  let held: T | undefined;
  let isDone = false;
  for await (const item of items) {
    if (isDone || !is(item)) yield item;
    else if (held === undefined) held = item;
    else {
      yield* [item, held];
      isDone = true;
    }
  }
  if (!isDone && held !== undefined) yield held;
}

export const withState = (session: Session, execState: ExecState): Session => Object.assign(session, { execState });
export const cold = (session: Session): Session => Object.assign(session, { computeState: ComputeState.COMPUTE_COLD });

/** Whether a record is a lifecycle event of this kind. */
export function isLifecycle(record: LogRecord, kind: string): boolean {
  return wordOf(record) === `LIFECYCLE ${kind}`;
}
