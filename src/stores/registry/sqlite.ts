/**
 * Registrations in a SQLite file beside the journal.
 *
 * Invariant: each change is one statement, so it is there whole or not at all, and on the disk when the call resolves.
 *
 * It is written in the caller's thread: a registration is rare, and costs one flush.
 */

import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import { HarnessSpecSchema } from "../../gen/agentsessions/v1/harness_registry_pb.ts";
import type { InsertOutcome, RegisteredHarness, RegistrationStore, ReplaceOutcome } from "../../spi/index.ts";
import { openOwnFile, told } from "../own-file/index.ts";
import { REGISTRY } from "./file.ts";

export interface SqliteRegistrationsOptions {
  /** The data folder, which must be there. */
  readonly folder: string;
}

/** Opens the registrations of a data folder. Throws FAILED_PRECONDITION where the file cannot be used, DATA_LOSS where it is damaged. */
export function openSqliteRegistrations({ folder }: SqliteRegistrationsOptions): RegistrationStore {
  return new SqliteRegistrations(openOwnFile(folder, REGISTRY));
}

type Row = Record<string, SQLOutputValue>;

class SqliteRegistrations implements RegistrationStore {
  readonly #db: DatabaseSync;
  readonly #all: StatementSync;
  readonly #one: StatementSync;
  readonly #insert: StatementSync;
  readonly #replace: StatementSync;
  #isClosed = false;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#all = db.prepare("SELECT * FROM registrations ORDER BY name");
    this.#one = db.prepare("SELECT * FROM registrations WHERE name = ?");
    this.#insert = db.prepare("INSERT INTO registrations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING");
    this.#replace = db.prepare(
      "UPDATE registrations SET version = ?, update_time_ms = ?, retire_time_ms = ?, retire_reason = ? WHERE name = ? AND version = ?",
    );
  }

  async load(): Promise<readonly RegisteredHarness[]> {
    return told(REGISTRY.name, () => this.#all.all().map(rowOf));
  }

  async insert(row: RegisteredHarness): Promise<InsertOutcome> {
    return told(REGISTRY.name, () => {
      const { name, uid, version, spec, specDigest, createTimeMs, updateTimeMs, retired } = row;
      const bytes = toBinary(HarnessSpecSchema, spec);
      const retire = [retired?.timeMs ?? null, retired?.reason ?? null];
      const { changes } = this.#insert.run(name, uid, version, bytes, specDigest, createTimeMs, updateTimeMs, ...retire);
      return { kind: Number(changes) === 1 ? "inserted" : "taken", row: this.#required(name) };
    });
  }

  async replace({ name, version, updateTimeMs, retired }: RegisteredHarness): Promise<ReplaceOutcome> {
    return told(REGISTRY.name, () => {
      const retire = [retired?.timeMs ?? null, retired?.reason ?? null];
      const { changes } = this.#replace.run(version, updateTimeMs, ...retire, name, version - 1);
      if (Number(changes) === 1) return { kind: "replaced", row: this.#required(name) };
      const known = this.#one.get(name);
      return known === undefined ? { kind: "unknown" } : { kind: "conflict", row: rowOf(known) };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isClosed) this.#db.close();
    this.#isClosed = true;
  }

  #required(name: string): RegisteredHarness {
    const row = this.#one.get(name);
    if (row === undefined) throw new HoldfastError("internal", "registry: a registration that was just written is not there");
    return rowOf(row);
  }
}

function rowOf(row: Row): RegisteredHarness {
  const retireTimeMs = row["retire_time_ms"];
  return {
    name: String(row["name"]),
    uid: String(row["uid"]),
    version: Number(row["version"]),
    spec: specOf(row["spec"]),
    specDigest: String(row["spec_digest"]),
    createTimeMs: Number(row["create_time_ms"]),
    updateTimeMs: Number(row["update_time_ms"]),
    retired: typeof retireTimeMs === "number" ? { timeMs: retireTimeMs, reason: String(row["retire_reason"] ?? "") } : undefined,
  };
}

function specOf(bytes: SQLOutputValue | undefined): RegisteredHarness["spec"] {
  try {
    return fromBinary(HarnessSpecSchema, bytes instanceof Uint8Array ? bytes : new Uint8Array());
  } catch (error) {
    throw new HoldfastError("data_loss", "registry: a registration cannot be read; restore the file from a copy", { cause: error });
  }
}
