/**
 * Standard output as a line: frames have it for themselves, and whatever the program prints goes to standard error.
 *
 * Invariants: from the moment that it is taken `console.log`, `process.stdout.write` and the like write to standard error; nothing but
 * frames goes to the real standard output. A program that is told by its environment to serve standard streams has them taken when it
 * imports this, before it can print anything.
 */

import { Console } from "node:console";
import { createWriteStream } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import type { StreamPair } from "../../harness-wire/node/index.ts";

/** Where the program that starts a harness says where it is to be served. */
export const LISTEN_VARIABLE = "HOLDFAST_HARNESS_LISTEN";

const STDOUT = 1;
let isTaken = false;

if (process.env[LISTEN_VARIABLE] === "stdio") keepPrintsOut();

/** Takes standard input and output for frames. They are not given back: a program serves one line. */
export function takeStdio(): StreamPair {
  keepPrintsOut();
  return { readable: process.stdin, writable: openStdout() };
}

function keepPrintsOut(): void {
  if (isTaken) return;
  isTaken = true;
  const { stderr } = process;
  // The getter of process.stdout opens the stream when it is first asked; asked for after this it never is.
  Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get: () => stderr });
  globalThis.console = new Console({ stdout: stderr, stderr });
}

/** Standard output without blocking: process.stdout would write to a pipe synchronously, and a host that is slow would stop the harness. */
function openStdout(): Writable {
  try {
    return new Socket({ fd: STDOUT, readable: false, writable: true });
  } catch {
    return createWriteStream("", { fd: STDOUT });
  }
}
