/** The program of this folder as a process that serves at an address, to be killed and started again. */

import { spawn, type ChildProcess } from "node:child_process";

/** A peer that runs. */
export interface Peer {
  readonly address: string;
  readonly process: ChildProcess;
  /** Kills it by `kill -9`; resolves when it has gone. */
  kill(): Promise<void>;
}

/** Starts the bundled program `file`; resolves when it listens at `address` (port 0: any free one). */
export async function startPeer(
  file: string,
  address: string,
  options: { readonly version?: string; readonly how?: "serve" | "contract" } = {},
): Promise<Peer> {
  const { version = "1", how = "serve" } = options;
  const env = { PATH: process.env["PATH"] ?? "", HOLDFAST_HARNESS_LISTEN: address, HARNESS_VERSION: version };
  const child = spawn(process.execPath, [file, how], { env, stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const listening = await new Promise<string>((resolve, reject) => {
    child.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim()));
    void exited.then(() => reject(new Error("the peer ended before it listened")));
  });
  return {
    address: listening,
    process: child,
    kill: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
