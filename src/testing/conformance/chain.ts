/** Verifying a session's chain from what its records say alone, by this library's own canonical form (I5). */

import { fromBinary } from "@bufbuild/protobuf";
import type { Digest } from "../../base/index.ts";
import { LogRecordSchema, type LogRecord } from "../../gen/agentsessions/v1/common_pb.ts";
import { createChainVerifier } from "../../journal/index.ts";
import { testDigest } from "../ports.ts";
import type { Bench } from "./bench.ts";
import { must, mustEqual } from "./expect.ts";

/** Reads a session's whole journal and verifies it: every hash and link, seqs without gap, and the head that the session names. */
export async function mustVerify(bench: Bench, session: string, digest: Digest = testDigest): Promise<readonly LogRecord[]> {
  const bytes = await bench.bytes(session);
  mustVerifyBytes(session, bytes, digest);
  mustEqual(`the head of session ${session}: last_seq`, await bench.head(session), BigInt(bytes.length));
  return bytes.map((record) => fromBinary(LogRecordSchema, record));
}

/** Verifies records that are a whole chain from the first one on. */
export function mustVerifyBytes(what: string, records: readonly Uint8Array[], digest: Digest = testDigest): void {
  const verifier = createChainVerifier(digest);
  verifier.pushPage(records);
  const verdict = verifier.finish();
  if (verdict.kind === "intact") return;
  const { kind, seq, expected, found } = verdict.fault;
  must(false, `the chain of ${what} breaks at seq ${seq} (${kind}): expected ${expected || "nothing"}, found ${found || "nothing"}`);
}
