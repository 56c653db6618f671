/** The line to a child that listens on a unix socket in a folder that nobody else may enter. */

import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve as absolutePath } from "node:path";
import type { Clock } from "../../base/ports.ts";
import type { Watchdog } from "./watchdog.ts";

/** A private folder for one socket. */
export interface SocketFolder extends AsyncDisposable {
  readonly path: string;
  readonly socket: string;
  /** As a harness is told it, and dialled. */
  readonly address: string;
}

/** Makes the folder, for its owner alone (mode 0700). It is removed when it is disposed of, or with the host. */
export async function makeSocketFolder(watchdog: Watchdog): Promise<SocketFolder> {
  const path = await mkdtemp(join(absolutePath(tmpdir()), "holdfast-"));
  watchdog.watchFolder(path);
  const socket = join(path, "harness.sock");
  return {
    path,
    socket,
    address: `unix://${socket}`,
    // What cannot be removed is an empty folder; nothing depends on it.
    [Symbol.asyncDispose]: async () => {
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
      watchdog.forgetFolder(path);
    },
  };
}

const LOOK_AGAIN_MS = 10;

/** Resolves once somebody listens on the socket. */
export async function untilListening(
  socket: string,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<void> {
  while (!(await answers(socket))) await clock.sleep(LOOK_AGAIN_MS, { signal });
}

function answers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect({ path: socket });
    const settle = (isThere: boolean): void => {
      probe.destroy();
      resolve(isThere);
    };
    probe.once("connect", () => settle(true));
    probe.once("error", () => settle(false));
  });
}
