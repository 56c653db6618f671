/** Verifying an exported journal without a server: a file of JSON lines, each a LogRecord, as `replay --json` prints them. */

import { fromJsonString } from "@bufbuild/protobuf";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { invalidArgument } from "../base/errors.ts";
import { seqOf } from "../base/ids.ts";
import { LogRecordSchema, type LogRecord } from "../gen/agentsessions/v1/common_pb.ts";
import { createChainVerifier, type ChainVerdict } from "../journal/index.ts";
import { nodeDigest } from "../node/index.ts";

/**
 * Verifies the chain in a file, or in standard input for `-`, line by line. Empty lines are passed over. A line that is no
 * LogRecord breaks the chain there.
 */
export async function verifyFile(path: string, signal: AbortSignal): Promise<ChainVerdict> {
  const verifier = createChainVerifier(nodeDigest);
  const input = path === "-" ? process.stdin : createReadStream(path);
  const lines = createInterface({ input, crlfDelay: Infinity, signal });
  const failed = new Promise<never>((_, reject) => {
    input.once("error", (error: Error) => reject(invalidArgument("FILE", "must be a file that can be read", { cause: error })));
  });
  const verdict = verifyLines(lines, verifier);
  return Promise.race([verdict, failed]);
}

async function verifyLines(lines: AsyncIterable<string>, verifier: ReturnType<typeof createChainVerifier>): Promise<ChainVerdict> {
  let records = 0;
  for await (const line of lines) {
    if (line.trim() === "") continue;
    const record = recordIn(line);
    if (record === undefined) return unreadable(verifier.finish(), records);
    if (verifier.push(record) !== undefined) return verifier.finish();
    records++;
  }
  if (records === 0) throw invalidArgument("FILE", "must hold at least one record");
  return verifier.finish();
}

function recordIn(line: string): LogRecord | undefined {
  try {
    return fromJsonString(LogRecordSchema, line);
  } catch {
    return undefined;
  }
}

function unreadable(verdict: ChainVerdict, records: number): ChainVerdict {
  if (verdict.kind === "broken") return verdict;
  const seq = seqOf(records + 1);
  return { ...verdict, kind: "broken", fault: { kind: "unreadable", seq, expected: "a LogRecord as JSON", found: "a line that is none" } };
}
