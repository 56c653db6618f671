/**
 * When no server was found: one in this process, unless the folder turns out to be held. Then whoever holds it may be a server that
 * has only just begun to start, and it is waited for a moment at the default address.
 */

import { existsSync } from "node:fs";
import { HoldfastError, type Clock } from "../base/index.ts";
import type { EmbeddedChoice } from "./choice.ts";
import { HintedError } from "./perform.ts";
import { DEFAULT_ADDRESS, type ProbeOutcome } from "./probe.ts";

/** How long a server that holds the folder may take until it answers. */
export const JOIN_TIMEOUT_MS = 3_000;
const LOOK_MS = 100;
const PLACE = new URL(DEFAULT_ADDRESS).host;

/** What a command needs to have a server of its own. */
export interface Embedding<Server> {
  readonly choice: EmbeddedChoice;
  /** The data folder; undefined for a journal in memory. */
  readonly folder: string | undefined;
  /** Whether the command only reads, and so has nothing to do where there is no folder. */
  readonly onlyReads: boolean;
  readonly start: () => Promise<Server>;
  readonly probe: () => Promise<ProbeOutcome>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The command's own server, or the one that answers at the default address by now. */
export type Embedded<Server> = { readonly kind: "embedded"; readonly server: Server } | { readonly kind: "joined" };

/**
 * Starts a server in this process or joins the one that holds the folder. Throws NOT_FOUND where a command that only reads finds no
 * folder: none is made then. Throws UNAVAILABLE when the folder stays held and nobody answers.
 */
export async function embedOrJoin<Server>(embedding: Embedding<Server>): Promise<Embedded<Server>> {
  const { choice, folder, onlyReads, start } = embedding;
  if (onlyReads && folder !== undefined && !existsSync(folder)) throw noJournal(choice, folder);
  try {
    return { kind: "embedded", server: await start() };
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== "unavailable" || folder === undefined) throw error;
    if (choice.found === "nobody" && (await answersSoon(embedding))) return { kind: "joined" };
    throw new HintedError(error, heldHint(choice, folder));
  }
}

/** What a person is told who did not ask for the embedded server: that there is one, and over which data. */
export function embeddingText({ found }: EmbeddedChoice, folder: string | undefined): string {
  const using = `using ${folder ?? "a journal in memory"} in this process`;
  return found === undefined ? using : `${foundText(found)}; ${using}`;
}

async function answersSoon({ probe, clock, signal }: Embedding<unknown>): Promise<boolean> {
  for (const untilMs = clock.monotonicMs() + JOIN_TIMEOUT_MS; clock.monotonicMs() < untilMs;) {
    if ((await probe()) === "holdfast") return true;
    await clock.sleep(LOOK_MS, { signal });
  }
  return false;
}

function noJournal({ found }: EmbeddedChoice, folder: string): HoldfastError {
  const why = found === undefined ? "nothing was recorded here yet" : foundText(found);
  return new HintedError(
    new HoldfastError("not_found", `there is no journal at ${folder}; ${why}`),
    "name the server with --server ADDRESS (or HOLDFAST_SERVER), or the folder with HOLDFAST_DATA",
  );
}

function heldHint({ found }: EmbeddedChoice, folder: string): string {
  const elsewhere = found === undefined ? "" : `, and ${foundText(found)}`;
  const remedy = "speak to the server that has it with --server ADDRESS (or HOLDFAST_SERVER), or name another folder with HOLDFAST_DATA";
  return `the folder is ${folder}${elsewhere}; ${remedy}`;
}

function foundText(found: "nobody" | "somebody-else"): string {
  return found === "nobody" ? `no server at ${PLACE}` : `what answers at ${PLACE} is not Holdfast`;
}
