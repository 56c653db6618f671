/**
 * The folder in which the sandboxes of one runtime have their state: runsc's own, the root of their file system, and images in use.
 *
 * Invariant: it is one process's. A process that was killed leaves it; the next runtime on the same machine removes it.
 */

import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError } from "../../base/errors.ts";
import { rootLinks } from "./bundle.ts";

/** The machine is part of the name: containers that share a folder do not know each other's processes. */
const PREFIX = `holdfast-gvisor-${hostname().replaceAll(/[^A-Za-z0-9]/g, "_")}-`;

/** The folders of one runtime. */
export class Workspace implements Disposable {
  readonly path: string;
  /** What runsc keeps of its containers. */
  readonly state: string;
  /** What the sandboxes' mounts are put into. */
  readonly root: string;
  readonly emptyFile: string;
  readonly #bundles: string;
  readonly #images: string;
  #imagesMade = 0;

  /** Makes one, and removes those of processes that are gone. Throws UNAVAILABLE where that cannot be. */
  constructor(parent = tmpdir()) {
    try {
      mkdirSync(parent, { recursive: true });
      removeAbandoned(parent);
      this.path = mkdtempSync(join(parent, `${PREFIX}${process.pid}-`));
      const made = ["state", "root", "bundles", "images"].map((name) => {
        const folder = join(this.path, name);
        mkdirSync(folder);
        return folder;
      });
      [this.state = "", this.root = "", this.#bundles = "", this.#images = ""] = made;
      this.emptyFile = join(this.path, "empty");
      writeFileSync(this.emptyFile, "");
      for (const { path, target } of rootLinks()) symlinkSync(target, join(this.root, path));
    } catch (cause) {
      throw new HoldfastError("unavailable", "runtime: the folder of its sandboxes cannot be made; the server's log has the details", {
        cause,
      });
    }
  }

  /** The folder of one sandbox. */
  bundleOf(id: string): string {
    return join(this.#bundles, id);
  }

  /** A name for the folder of one image. */
  newImage(): string {
    return join(this.#images, String(this.#imagesMade++));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** A process that was killed took its sandboxes with it: what is left of them is files. */
function removeAbandoned(parent: string): void {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(PREFIX)) continue;
    const pid = Number.parseInt(name.slice(PREFIX.length), 10);
    if (Number.isNaN(pid) || isAlive(pid)) continue;
    rmSync(join(parent, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}
