/** A folder for one test. */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system in memory, where the machine has one: tests that open hundreds of journals need not wait for a disk. */
const MEMORY = "/dev/shm";

/** A new empty folder, removed with all it holds when it is disposed of. `disk`: not in memory. */
export class TemporaryFolder implements Disposable {
  readonly path: string;

  constructor(place: "any" | "disk" = "any") {
    const parent = place === "any" && existsSync(MEMORY) ? MEMORY : tmpdir();
    this.path = mkdtempSync(join(parent, "holdfast-test-"));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
