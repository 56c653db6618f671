/** A turn as the flags of exec describe it. */

import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { invalidArgument } from "../base/errors.ts";
import type { ExecTurn } from "../client/index.ts";
import type { ExecFlags } from "./commands/exec.ts";
import { givenCreationFlags } from "./creation.ts";

/** The turn of these flags; its deadline counts from now. Reads standard input and the config file where they say so. */
export async function readTurn(flags: ExecFlags): Promise<ExecTurn> {
  const [given] = givenCreationFlags(flags);
  if (flags.session !== undefined && given !== undefined) {
    throw invalidArgument(given, "is for a new session; leave it out with --session");
  }
  if (flags.deltas === true && flags.json !== true)
    throw invalidArgument("--deltas", "is for --json; on a terminal deltas are shown anyway");
  return {
    session: flags.session,
    inputs: await readInputs(flags.input ?? []),
    harness: flags.harness,
    config: await readConfig(flags),
    expectedLastSeq: flags.expectedLastSeq,
    deadline: flags.deadline === undefined ? undefined : new Date(new Date().getTime() + flags.deadline),
  };
}

/** The texts of inputs; `-` stands for standard input, once. */
export async function readInputs(inputs: readonly string[]): Promise<readonly string[]> {
  if (inputs.filter((input) => input === "-").length > 1) throw invalidArgument("--input", "can read standard input only once");
  return Promise.all(inputs.map(async (input) => (input === "-" ? (await text(process.stdin)).replace(/\r?\n$/, "") : input)));
}

async function readConfig({ config, configFile }: ExecFlags): Promise<Uint8Array | string | undefined> {
  if (configFile === undefined) return config;
  try {
    return await readFile(configFile);
  } catch (error) {
    throw invalidArgument("--config-file", "must name a file that can be read", { cause: error });
  }
}
