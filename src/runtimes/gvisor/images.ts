/**
 * Images as folders, while sandboxes are started from them: forks of one image read it once.
 *
 * Invariant: a folder is there as long as somebody uses it, and no longer.
 */

import { rm } from "node:fs/promises";
import type { SandboxImage } from "./sandbox.ts";
import type { ImageHead, ImageStore } from "./image-store.ts";
import type { Workspace } from "./workspace.ts";

interface Use {
  readonly image: Promise<SandboxImage>;
  readonly folder: string;
  users: number;
}

/** The images in use. */
export class Images {
  readonly #store: ImageStore;
  readonly #workspace: Workspace;
  readonly #used = new Map<string, Use>();

  constructor(store: ImageStore, workspace: Workspace) {
    this.#store = store;
    this.#workspace = workspace;
  }

  /** Keeps what a capture wrote and stored, for its first user; `release` ends the use. */
  keep(uri: string, image: SandboxImage): void {
    this.#used.set(uri, { image: Promise.resolve(image), folder: image.folder, users: 1 });
  }

  /** Runs `task` with an image; its head says what is read where it is not here yet. */
  async use<T>(uri: string, head: ImageHead, task: (image: SandboxImage) => Promise<T>): Promise<T> {
    let use = this.#used.get(uri);
    if (use === undefined) {
      const folder = this.#workspace.newImage();
      const image = this.#store.get(head, folder).then(() => ({ folder, line: head.line }));
      use = { image, folder, users: 0 };
      this.#used.set(uri, use);
    }
    use.users += 1;
    try {
      return await task(await use.image);
    } finally {
      await this.release(uri);
    }
  }

  /** Ends a use. */
  async release(uri: string): Promise<void> {
    const use = this.#used.get(uri);
    if (use === undefined || --use.users > 0) return;
    this.#used.delete(uri);
    await rm(use.folder, { recursive: true, force: true });
  }
}
