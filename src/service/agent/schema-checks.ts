/** Checks of arguments by the JSON Schemas of clients' tools. Clients of one kind register the same tools, so a schema is compiled once. */

import type { JsonObject } from "@bufbuild/protobuf";

/** What is wrong with a value, in words for whoever made it; undefined when nothing is. */
export type SchemaCheck = (value: unknown) => string | undefined;

/** Makes a check. Throws INVALID_ARGUMENT that names `field` for what is no schema. */
export type SchemaCompiler = (schema: Readonly<Record<string, unknown>>, field: string) => SchemaCheck;

/** Checks that are kept; the one that was used longest ago makes room. */
const KEPT_MAX = 256;

export class SchemaChecks {
  readonly #compile: SchemaCompiler;
  readonly #kept = new Map<string, SchemaCheck>();

  constructor(compile: SchemaCompiler) {
    this.#compile = compile;
  }

  /** The check by a schema. Throws INVALID_ARGUMENT that names `field` for what is no schema. */
  of(schema: JsonObject, field: string): SchemaCheck {
    const key = JSON.stringify(schema);
    const check = this.#kept.get(key) ?? this.#compile(schema, field);
    this.#kept.delete(key);
    this.#kept.set(key, check);
    if (this.#kept.size > KEPT_MAX) {
      const [oldest] = this.#kept.keys();
      if (oldest !== undefined) this.#kept.delete(oldest);
    }
    return check;
  }
}
