/** Checking arguments by a JSON Schema (drafts 07 and 2020-12), and saying what is wrong in words. */

import { Ajv, type ErrorObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { invalidArgument, type HoldfastError } from "../base/index.ts";

/** How a check speaks of what it checks. */
export interface CheckedThing {
  /** What it says before the faults. */
  readonly unfit: string;
  /** The whole of it, as the subject of a sentence. */
  readonly whole: string;
}

const ARGUMENTS: CheckedThing = { unfit: "do not fit the tool's schema", whole: "they" };

/** What is wrong with a value; undefined when nothing is. */
export type SchemaCheck = (value: unknown) => string | undefined;

/** At most so many faults are named: whoever made the call needs the first ones. */
const FAULTS_MAX = 3;

/**
 * A check by `schema`. A keyword that is not known says nothing, as the specification has it, and formats are notes. Throws
 * INVALID_ARGUMENT that names `field` for what is no schema.
 */
export function compileSchema(schema: Readonly<Record<string, unknown>>, field: string, thing = ARGUMENTS): SchemaCheck {
  // Each schema has an instance of its own: two tools may well use one $id.
  const { $schema, ...rest } = schema;
  const isOld = typeof $schema === "string" && /draft-0[467]/.test($schema);
  const options = { strict: false, allErrors: true, validateFormats: false } as const;
  try {
    const validate = (isOld ? new Ajv(options) : new Ajv2020(options)).compile(rest);
    return (value) => (validate(value) ? undefined : faultsText(validate.errors ?? [], thing));
  } catch (error) {
    throw notASchema(field, error);
  }
}

function notASchema(field: string, cause: unknown): HoldfastError {
  const error = invalidArgument(field, "must be a JSON Schema of draft 07 or 2020-12");
  error.cause = cause;
  return error;
}

/** The first faults, each with its place; no value is repeated. */
function faultsText(errors: readonly ErrorObject[], { unfit, whole }: CheckedThing): string {
  const shown = errors.slice(0, FAULTS_MAX).map((error) => faultText(error, whole));
  const more = errors.length > FAULTS_MAX ? ` (and ${errors.length - FAULTS_MAX} more)` : "";
  return `${unfit}: ${shown.join("; ")}${more}`;
}

function faultText({ instancePath, message = "is wrong", keyword, params }: ErrorObject, whole: string): string {
  const place = instancePath === "" ? whole : instancePath.slice(1).replaceAll("/", ".");
  const extra = keyword === "additionalProperties" && "additionalProperty" in params ? ` (${String(params["additionalProperty"])})` : "";
  return `${place} ${message}${extra}`;
}
