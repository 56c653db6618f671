/** Drives one turn of a harness without a controller, and looks at processes from outside. */

import { readFileSync } from "node:fs";
import { executionIdOf, sessionUidOf, type Seq } from "../../base/ids.ts";
import { textMessage, type Harness, type Start } from "../../spi/index.ts";
import { textResponse } from "../host.ts";
import { createRecordingSink } from "../recording-sink.ts";

/** A start without a past. */
export function startWith(text: string): Start {
  return {
    executionId: executionIdOf("execution"),
    sessionUid: sessionUidOf("session"),
    config: new Uint8Array(),
    history: { lastSeq: 0 as Seq, async *read() {} },
    inputs: [textMessage("user", text)],
    identity: {},
    resumeFromSeq: 0n,
    model: "test",
  };
}

/** A turn that is under way. */
export interface DrivenTurn {
  /** Resolves with all texts that it said. */
  readonly said: Promise<readonly string[]>;
  /** Resolves when it has said something. */
  readonly speaks: Promise<void>;
  cancel(reason?: Error): void;
}

/** Drives a turn whose input is `text`; the model answers `hello`. */
export function drive(harness: Harness, text: string): DrivenTurn {
  const abort = new AbortController();
  const spoken = Promise.withResolvers<void>();
  const texts: string[] = [];
  const sink = createRecordingSink({ model: () => textResponse("hello") });
  const output = async (said: string): Promise<void> => {
    texts.push(said);
    spoken.resolve();
  };
  const said = harness.run(startWith(text), { ...sink, output }, { signal: abort.signal }).then(() => texts);
  said.catch(() => undefined);
  return { said, speaks: spoken.promise, cancel: (reason) => abort.abort(reason ?? new Error("cancelled")) };
}

/** What a turn says that is driven to its end. */
export async function saidBy(harness: Harness, text: string): Promise<string> {
  return (await drive(harness, text).said).join("\n");
}

/** The state of a process as the kernel has it (`R`, `S`, `T`, `Z`); undefined for one that is gone. Linux. */
export function stateOfProcess(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[0];
  } catch {
    return undefined;
  }
}

/** Whether a process runs or waits; one that nobody has reaped yet does neither. */
export function isAlive(pid: number): boolean {
  const state = stateOfProcess(pid);
  return state !== undefined && state !== "Z" && state !== "X";
}

/** Resolves once `condition` holds. For what no event tells. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
}
