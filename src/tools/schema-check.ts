/**
 * Checking arguments by a JSON Schema (drafts 07 and 2020-12), and saying what is wrong in words.
 *
 * Invariant: schemas and what they are applied to come from anybody. Neither compiling nor checking holds up the thread for longer than a limit,
 * whatever patterns and references are in them.
 */

import { Ajv, type ErrorObject, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { HoldfastError, invalidArgument } from "../base/index.ts";
import { isPlainSchema } from "./plain-schema.ts";
import { withinTime } from "./within-time.ts";

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

/** How long compiling a schema may take. */
const COMPILE_MS_MAX = 1_000;
/** How long one check may take. */
const CHECK_MS_MAX = 100;

/** The characters of a plain schema times those of a value: up to so many the worst check takes a few milliseconds. */
const UNWATCHED_CHARS_MAX = 1_000_000;

const OPTIONS: Options = { strict: false, allErrors: true, validateFormats: false };

/** The drafts, and what a schema of each is checked by. Making that takes longer than anything else here, so it is made once. */
const DRAFTS = {
  old: { Validator: Ajv, meta: lazily(() => new Ajv(OPTIONS)) },
  new: { Validator: Ajv2020, meta: lazily(() => new Ajv2020(OPTIONS)) },
} as const;

/**
 * A check by `schema`. A keyword that is not known says nothing, as the specification has it, and formats are notes. What takes longer than
 * 100 ms to check does not fit. Throws INVALID_ARGUMENT that names `field` for what is no schema, or takes longer than a second to compile.
 */
export function compileSchema(schema: Readonly<Record<string, unknown>>, field: string, thing = ARGUMENTS): SchemaCheck {
  const { $schema, ...rest } = schema;
  const draft = typeof $schema === "string" && /draft-0[467]/.test($schema) ? "old" : "new";
  // What is made once is not made in the time of the first schema.
  DRAFTS[draft].meta();
  try {
    const validate = withinTime(COMPILE_MS_MAX, () => validatorOf(rest, draft));
    if (validate === undefined) throw invalidArgument(field, `must take less than ${COMPILE_MS_MAX} ms to compile`);
    const check = (value: unknown): string | undefined =>
      validate.value(value) ? undefined : faultsText(validate.value.errors ?? [], thing);
    const plainChars = isPlainSchema(rest) ? JSON.stringify(rest).length : undefined;
    return (value) => (isQuick(plainChars, value) ? check(value) : checked(() => check(value), thing));
  } catch (error) {
    throw error instanceof HoldfastError ? error : notASchema(field, error);
  }
}

/** Each schema has an instance of its own: two tools may well use one $id. */
function validatorOf(schema: Readonly<Record<string, unknown>>, draft: keyof typeof DRAFTS): ValidateFunction {
  const { Validator, meta } = DRAFTS[draft];
  if (meta().validateSchema(schema) !== true) throw new Error("it does not fit its draft");
  const options = { ...OPTIONS, validateSchema: false };
  try {
    return new Validator({ ...options, meta: false }).compile(schema);
  } catch (error) {
    // Few refer to the schema of schemas.
    if (error instanceof Ajv.MissingRefError) return new Validator(options).compile(schema);
    throw error;
  }
}

/** Whether a check need not be watched: watching over it costs more than all the rest of a call. */
function isQuick(plainChars: number | undefined, value: unknown): boolean {
  if (plainChars === undefined) return false;
  const valueChars = JSON.stringify(value)?.length ?? 0;
  return plainChars * valueChars <= UNWATCHED_CHARS_MAX;
}

/** What a check comes to; what does not come to an end does not fit. */
function checked(check: () => string | undefined, { unfit }: CheckedThing): string | undefined {
  try {
    const done = withinTime(CHECK_MS_MAX, check);
    return done === undefined ? `${unfit}: it cannot be applied within ${CHECK_MS_MAX} ms` : done.value;
  } catch {
    // A reference that leads in a circle, or a pattern that is too large.
    return `${unfit}: it cannot be applied`;
  }
}

function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
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
