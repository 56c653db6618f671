/**
 * What a request's content must be so that it can be recorded: every text well formed, every number finite, every time within
 * range, nothing nested without end (`docs/canonical-form.md` says why).
 *
 * The walk follows the message's descriptor, so a new field of the contract is checked without a change here.
 */

import { isMessage, type DescField, type DescMessage, type DescOneof, type Message } from "@bufbuild/protobuf";
import { StructSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "../base/errors.ts";

/** The first and the last second that a Timestamp can name: years 1 to 9999. */
const SECONDS_MIN = -62_135_596_800n;
const SECONDS_MAX = 253_402_300_799n;

/** Throws INVALID_ARGUMENT, naming the field under `path`, for content that has no canonical form. `depthMax` bounds nesting. */
export function checkContent(desc: DescMessage, message: Message, path: string, depthMax: number): void {
  if (depthMax < 0) throw tooDeep(path);
  if (isMessage(message, TimestampSchema)) return checkTimestamp(message.seconds, message.nanos, path);
  // A generated message is a plain object with one property for each member.
  const properties = message as Message & Readonly<Record<string, unknown>>;
  for (const member of desc.members) {
    const value = properties[member.localName];
    if (member.kind === "oneof") checkOneof(member, value, path, depthMax);
    else checkField(member, value, `${path}.${member.name}`, depthMax);
  }
}

function checkOneof(oneof: DescOneof, chosen: unknown, path: string, depthMax: number): void {
  const { case: name, value } = chosen as { readonly case: string | undefined; readonly value?: unknown };
  const field = oneof.fields.find((candidate) => candidate.localName === name);
  if (field !== undefined) checkField(field, value, `${path}.${field.name}`, depthMax);
}

function checkField(field: DescField, value: unknown, path: string, depthMax: number): void {
  if (value === undefined) return;
  switch (field.fieldKind) {
    case "scalar":
      return checkScalar(value, path);
    case "enum":
      return;
    case "message":
      return checkMessage(field.message, value, path, depthMax);
    case "list":
      (value as readonly unknown[]).forEach((element, index) => {
        checkElement(field.message, element, `${path}[${index}]`, depthMax);
      });
      return;
    case "map":
      for (const [key, element] of Object.entries(value as object)) {
        checkScalar(key, path);
        checkElement(field.message, element, path, depthMax);
      }
  }
}

function checkElement(desc: DescMessage | undefined, value: unknown, path: string, depthMax: number): void {
  if (desc === undefined) checkScalar(value, path);
  else checkMessage(desc, value, path, depthMax);
}

/** A Struct is plain JSON in generated messages. */
function checkMessage(desc: DescMessage, value: unknown, path: string, depthMax: number): void {
  if (desc.typeName === StructSchema.typeName) checkJson(value, path, depthMax);
  else checkContent(desc, value as Message, path, depthMax - 1);
}

function checkScalar(value: unknown, path: string): void {
  if (typeof value === "string" && !value.isWellFormed()) throw invalidArgument(path, "must have no lone surrogates");
  if (typeof value === "number" && !Number.isFinite(value)) throw invalidArgument(path, "must have finite numbers only");
}

/** The path ends at the Struct's field: keys are the caller's content. */
function checkJson(value: unknown, path: string, depthMax: number): void {
  if (depthMax < 0) throw tooDeep(path);
  if (typeof value !== "object" || value === null) return checkScalar(value, path);
  for (const [key, element] of Object.entries(value)) {
    checkScalar(key, path);
    checkJson(element, path, depthMax - 1);
  }
}

function tooDeep(path: string): Error {
  return invalidArgument(path, "is nested too deeply");
}

function checkTimestamp(seconds: bigint, nanos: number, path: string): void {
  if (seconds < SECONDS_MIN || seconds > SECONDS_MAX || nanos < 0 || nanos > 999_999_999) {
    throw invalidArgument(path, "must be a time of the years 1 to 9999");
  }
}
