/** A Holdfast server as a process of its own, run from the sources by `holdfast serve`. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { start, type CommandOptions, type CommandResult, type RunningCommand } from "./command.ts";

export interface ServerProcess {
  /** Such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Host and port. */
  readonly address: string;
  readonly command: RunningCommand;
  /** Sends a signal and waits for the process to end. */
  end(signal: NodeJS.Signals): Promise<CommandResult>;
}

/** A data folder of its own, removed when the test is over, or by its owner. */
export function newDataFolder(owner: (remove: () => void) => void = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-e2e-"));
  owner(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const READY = /holdfast is listening on (?<url>https?:\/\/(?<address>\S+)) /;

/** Starts a server on a free port and waits until it says where it listens. */
export async function serve(
  folder: string,
  options: Pick<CommandOptions, "env" | "owner"> & { readonly flags?: readonly string[] } = {},
): Promise<ServerProcess> {
  const { flags = [], ...rest } = options;
  const command = start(["serve", "--listen", "127.0.0.1:0", "--data", folder, ...flags], rest);
  let said = "";
  command.child.stdout.on("data", (text: string) => (said += text));
  await command.said("holdfast is listening on");
  const { url, address } = READY.exec(said)?.groups ?? {};
  if (url === undefined || address === undefined) throw new Error(`the server said ${JSON.stringify(said)}`);
  return {
    url,
    address,
    command,
    end(signal) {
      command.child.kill(signal);
      return command.result;
    },
  };
}
