/** The rules for texts in requests. Each error names the field and what would be right, and repeats nothing of the text. */

import { utf8Length } from "../base/bytes.ts";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import type { ServiceLimits } from "./limits.ts";

// oxlint-disable-next-line no-control-regex -- control characters are exactly what these texts must not hold.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** `text` when it has at most `charsMax` characters (UTF-16 code units), no control characters and no lone surrogates. */
export function plainText(text: string, field: string, charsMax: number): string {
  if (text.length > charsMax) throw invalidArgument(field, `must have at most ${charsMax} characters`);
  if (CONTROL.test(text)) throw invalidArgument(field, "must have no control characters");
  if (!text.isWellFormed()) throw invalidArgument(field, "must have no lone surrogates");
  return text;
}

/** A name: plain text that does not begin or end with white space. May be empty. */
export function nameText(text: string, field: string, charsMax: number): string {
  if (text !== text.trim()) throw invalidArgument(field, "must not begin or end with white space");
  return plainText(text, field, charsMax);
}

/** Labels: short plain texts that callers select sessions by. */
export function labelsOf(labels: Readonly<Record<string, string>>, field: string, limits: ServiceLimits): Record<string, string> {
  const entries = Object.entries(labels);
  refuseMany(entries.length, limits.labelsMax, field, "labels");
  for (const [key, value] of entries) {
    checkKey(key, field, limits);
    if (value.length > limits.labelValueCharsMax) {
      throw invalidArgument(field, `every value must have at most ${limits.labelValueCharsMax} characters`);
    }
    if (CONTROL.test(value)) throw invalidArgument(field, "every value must have no control characters");
    if (!value.isWellFormed()) throw invalidArgument(field, "every value must have no lone surrogates");
  }
  return { ...labels };
}

/** Annotations: larger texts that nobody selects by, line breaks included. */
export function annotationsOf(annotations: Readonly<Record<string, string>>, field: string, limits: ServiceLimits): Record<string, string> {
  const entries = Object.entries(annotations);
  refuseMany(entries.length, limits.annotationsMax, field, "annotations");
  let bytes = 0;
  for (const [key, value] of entries) {
    checkKey(key, field, limits);
    if (!value.isWellFormed()) throw invalidArgument(field, "every value must have no lone surrogates");
    bytes += utf8Length(key) + utf8Length(value);
  }
  if (bytes > limits.annotationsBytesMax) {
    throw overLimit(field, `takes ${bytes} bytes; at most ${limits.annotationsBytesMax} are allowed`);
  }
  return { ...annotations };
}

function checkKey(key: string, field: string, limits: ServiceLimits): void {
  if (key === "" || key.length > limits.keyCharsMax) {
    throw invalidArgument(field, `every key must have 1 to ${limits.keyCharsMax} characters`);
  }
  if (CONTROL.test(key) || !key.isWellFormed()) {
    throw invalidArgument(field, "every key must have no control characters and no lone surrogates");
  }
}

/** Throws RESOURCE_EXHAUSTED when there are more than `max` things. */
export function refuseMany(count: number, max: number, field: string, things: string): void {
  if (count > max) throw overLimit(field, `has ${count} ${things}; at most ${max} are allowed`);
}

/** A RESOURCE_EXHAUSTED that names the field and the limit. */
export function overLimit(field: string, message: string): HoldfastError {
  return new HoldfastError("resource_exhausted", `${field}: ${message}`, { field });
}
