/**
 * The one writer of the journal's file: it runs a list of statements as one transaction.
 *
 * After any error it looks at whether the transaction is still open: SQLite ends some by itself, and a statement after that
 * would be a transaction of its own, acknowledged without the rest of its batch.
 *
 * Before each commit it looks at whether the file is still where it was opened.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { openWriter, type WriterOptions } from "./connection.ts";
import { KnownFile } from "./known-file.ts";
import { rollBack } from "./schema.ts";
import { STATEMENT_NAMES, STATEMENTS, VALUE_COUNTS, type WriteList } from "./statements.ts";

/** Writes lists of statements on a connection of its own. */
export class BatchWriter {
  readonly #db: DatabaseSync;
  readonly #file: KnownFile;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  /** By the statements' numbers. */
  readonly #statements: readonly StatementSync[];

  /** Whether a transaction was begun for the next `write`. */
  #isOpen = false;
  #stagingFault: { readonly error: unknown } | undefined;

  constructor(options: WriterOptions) {
    this.#db = openWriter(options);
    this.#file = new KnownFile(options.path);
    this.#begin = this.#db.prepare("BEGIN IMMEDIATE");
    this.#commit = this.#db.prepare("COMMIT");
    this.#statements = STATEMENT_NAMES.map((name) => this.#db.prepare(STATEMENTS[name]));
  }

  /** Begins the next transaction with `list`. A fault is kept for `write`, which must follow. */
  stage(list: WriteList): void {
    if (this.#stagingFault !== undefined) return;
    try {
      this.#open();
      this.#run(list);
    } catch (error) {
      this.#abandon();
      this.#stagingFault = { error };
    }
  }

  /**
   * Runs all of `list`, after what was staged, and makes it durable, or throws and has kept nothing of it: SQLite's error, or a
   * HoldfastError where the file is not there any more.
   */
  write(list: WriteList): void {
    const fault = this.#stagingFault;
    this.#stagingFault = undefined;
    if (fault !== undefined) throw fault.error;
    try {
      this.#open();
      this.#run(list);
      this.#file.requireThere();
      this.#commit.run();
      this.#isOpen = false;
    } catch (error) {
      this.#abandon();
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  #run({ statements, values }: WriteList): void {
    let at = 0;
    for (const number of statements) {
      const end = at + VALUE_COUNTS[number]!;
      this.#statements[number]!.run(...values.slice(at, end));
      at = end;
    }
  }

  #open(): void {
    if (!this.#isOpen) this.#begin.run();
    this.#isOpen = true;
  }

  #abandon(): void {
    this.#isOpen = false;
    rollBack(this.#db);
  }
}
