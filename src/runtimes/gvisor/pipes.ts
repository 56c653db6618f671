/**
 * Named pipes as the standard streams of a sandbox. What Node gives a child for a pipe is a socket, and a sandbox that holds a socket of
 * the host's cannot be restored, or not even be checkpointed.
 *
 * Invariant: the names are gone once the pipes are open.
 */

import { execFile } from "node:child_process";
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Both ends of three pipes. */
export interface StandardPipes {
  /** The host's ends. */
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The descriptors for the child, in their order. */
  readonly child: readonly [number, number, number];
  /** Closes the child's ends here; it has them by then. */
  given(): void;
}

/** Makes the pipes; their names are in `folder` for a moment. */
export async function openPipes(mkfifo: string, folder: string): Promise<StandardPipes> {
  const [input, output, errors] = ["stdin", "stdout", "stderr"].map((name) => join(folder, name)) as [string, string, string];
  await run(mkfifo, ["-m", "600", input, output, errors]);
  const opened: number[] = [];
  const open = (file: string, flags: number): number => {
    const fd = openSync(file, flags);
    opened.push(fd);
    return fd;
  };
  try {
    // Without O_NONBLOCK the first end to be opened would wait for the other.
    const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;
    const readers = [input, output, errors].map((file) => open(file, O_RDONLY | O_NONBLOCK));
    const writers = [open(input, O_WRONLY | O_NONBLOCK), open(output, O_WRONLY), open(errors, O_WRONLY)];
    const child = [readers[0]!, writers[1]!, writers[2]!] as const;
    return {
      stdin: new Socket({ fd: writers[0]!, readable: false, writable: true }),
      stdout: new Socket({ fd: readers[1]!, readable: true, writable: false }),
      stderr: new Socket({ fd: readers[2]!, readable: true, writable: false }),
      child,
      given: () => child.forEach((fd) => closeSync(fd)),
    };
  } catch (error) {
    for (const fd of opened) closeSync(fd);
    throw error;
  } finally {
    for (const file of [input, output, errors]) rmSync(file, { force: true });
  }
}
