/**
 * All sandboxes of a runtime: how they are started, how their memory is stored, and that none of them is left.
 *
 * Invariant: a capture that cannot be stored loses nothing. The sandbox goes on from what it wrote.
 */

import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { HoldfastError } from "../../base/errors.ts";
import { newUuid, type SessionUid } from "../../base/ids.ts";
import { StartGate } from "../../node/index.ts";
import type { CallOptions } from "../../spi/index.ts";
import { emptyPaths, visiblePaths } from "./bundle.ts";
import type { ContainerHost } from "./container.ts";
import { ImageStore, refuseOtherPins, type ImageHead, type Pins } from "./image-store.ts";
import { Images } from "./images.ts";
import { unrunnable } from "./probe.ts";
import { digestOf } from "./programs.ts";
import { Sandbox, type SandboxImage } from "./sandbox.ts";

/** An image that is stored, and can be used here. */
export interface StoredImage {
  readonly uri: string;
  readonly head: ImageHead;
}

/** What became of a capture. */
export type CaptureOutcome =
  | { readonly kind: "stored"; readonly image: StoredImage }
  /** It could not be stored, and this sandbox goes on in place of the one that was captured. */
  | { readonly kind: "unstored"; readonly sandbox: Sandbox; readonly error: unknown };

/** How a sandbox is begun. */
export interface BeginOptions {
  /** The memory that it goes on from; undefined for a cold start. */
  readonly image: StoredImage | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onGone: (sandbox: Sandbox) => void;
}

/** Starts sandboxes and keeps their images. */
export class SandboxHost implements AsyncDisposable {
  readonly #host: ContainerHost;
  readonly #store: ImageStore;
  readonly #images: Images;
  readonly #gate: StartGate;
  readonly #living = new Set<Promise<Sandbox>>();
  readonly #closing = new AbortController();

  constructor(host: ContainerHost) {
    const { blobs, ports, startsAtOnceMax } = host.settings;
    this.#host = host;
    this.#store = new ImageStore(blobs, ports.random);
    this.#images = new Images(this.#store, host.workspace);
    this.#gate = new StartGate(startsAtOnceMax ?? 2 * availableParallelism());
  }

  /** A stored image. Undefined where it is not there; FAILED_PRECONDITION where it was taken with something else. */
  async imageOf(uri: string, options: CallOptions): Promise<StoredImage | undefined> {
    const head = await this.#store.head(uri, options);
    if (head === undefined) return undefined;
    refuseOtherPins(head.pins, await this.#pins());
    return { uri, head };
  }

  /** Starts a sandbox, afresh or from an image, and waits until it answers. */
  begin({ image, signal, onGone }: BeginOptions): Promise<Sandbox> {
    if (image === undefined) return this.#begin(undefined, signal, onGone);
    return this.#images.use(image.uri, image.head, (files) => this.#begin(files, signal, onGone));
  }

  /** Captures a sandbox, which ends, and stores it. Rejects where it cannot be captured. */
  async capture(sandbox: Sandbox, session: SessionUid, onGone: (sandbox: Sandbox) => void): Promise<CaptureOutcome> {
    const pins = await this.#pins();
    const folder = this.#host.workspace.newImage();
    let files: SandboxImage;
    try {
      files = await sandbox.capture(folder);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
    try {
      const uri = await this.#store.put(folder, { pins, session, line: files.line });
      const head = await this.#store.head(uri, {});
      if (head === undefined) throw new HoldfastError("data_loss", "snapshot: the blob store lost it as it was stored");
      this.#images.keep(uri, files);
      return { kind: "stored", image: { uri, head } };
    } catch (error) {
      try {
        return { kind: "unstored", sandbox: await this.#begin(files, undefined, onGone), error };
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    }
  }

  /** The files of a capture are not needed any longer; what is stored stays. */
  release({ uri }: StoredImage): Promise<void> {
    return this.#images.release(uri);
  }

  /** Renews what is stored; answers the first part that is gone. */
  renew(uri: string, options: CallOptions): Promise<string | undefined> {
    return this.#store.renew(uri, options);
  }

  /** Removes what is stored, if there is a newer image of the same session. */
  discard(uri: string, newer: string, options: CallOptions): Promise<void> {
    return this.#store.discard(uri, newer, options);
  }

  /** Ends every sandbox. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new HoldfastError("unavailable", "runtime: it is being closed"));
    const living = await Promise.allSettled(this.#living);
    const sandboxes = living.flatMap((started) => (started.status === "fulfilled" ? [started.value] : []));
    await Promise.all(sandboxes.map((sandbox) => sandbox.stop()));
    this.#host.workspace[Symbol.dispose]();
  }

  async #begin(image: SandboxImage | undefined, signal: AbortSignal | undefined, onGone: (sandbox: Sandbox) => void): Promise<Sandbox> {
    const either = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    let begun: Sandbox | undefined;
    const forget = (): void => {
      this.#living.delete(starting);
      if (begun !== undefined) onGone(begun);
    };
    const id = `holdfast-${newUuid(this.#host.settings.ports)}`;
    const starting = this.#gate.pass(() => Sandbox.start(this.#host, { id, image, signal: either, onGone: forget }), either);
    this.#living.add(starting);
    try {
      begun = await starting;
      if (!begun.isAlive) forget();
      return begun;
    } catch (error) {
      this.#living.delete(starting);
      throw await this.#explained(error, either, image !== undefined);
    }
  }

  /** Why a sandbox did not start: nothing can run here, or this image cannot be brought back, or what it says itself. */
  async #explained(error: unknown, signal: AbortSignal, wasRestored: boolean): Promise<unknown> {
    if (signal.aborted) return error;
    const reason = await unrunnable(this.#host);
    if (reason !== undefined) {
      return new HoldfastError(
        "failed_precondition",
        "runtime: runsc cannot run a sandbox on this host; the server's log has the details",
        {
          cause: error,
          details: { reason },
        },
      );
    }
    if (!wasRestored) return error;
    return new HoldfastError(
      "failed_precondition",
      "snapshot: runsc did not bring it back; what the sandbox sees of the host may have changed since; the server's log has the details",
      { cause: error },
    );
  }

  async #pins(): Promise<Pins> {
    const { settings, programs } = this.#host;
    const empty = emptyPaths(settings, programs);
    const seen = [programs.command, settings.args, settings.cwd, visiblePaths(settings, programs)];
    // Where nothing is hidden, images are good that were taken before anything could be.
    const command = createHash("sha256").update(JSON.stringify(empty.length === 0 ? seen : [...seen, empty]));
    return {
      runsc: programs.runscVersion,
      platform: settings.platform ?? "default",
      command: command.digest("hex"),
      program: await digestOf(programs.realCommand),
    };
  }
}
