/** A harness's program, started by hand where a host would find it. */

import { spawn } from "node:child_process";

/** A program that serves. */
export interface ServedProgram {
  /** Where it says that it listens. */
  readonly address: string;
  /** Stops it and waits for its end. */
  end(): Promise<void>;
}

/** Starts a program with HOLDFAST_HARNESS_LISTEN and waits until it says on standard error where it listens. */
export async function listenAt(
  [program, ...args]: readonly [string, ...string[]],
  listen: string,
  env: Readonly<Record<string, string>> = {},
): Promise<ServedProgram> {
  const child = spawn(program, args, {
    env: { ...env, PATH: process.env["PATH"], HOLDFAST_HARNESS_LISTEN: listen },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const address = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`the program ended with ${code}: ${said}`)));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const match = /harness served at (?<address>\S+)/.exec(said)?.groups?.["address"];
      if (match !== undefined) resolve(match);
    });
  });
  return {
    address,
    end: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
