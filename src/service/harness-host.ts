/**
 * HarnessHost: a harness elsewhere reads the history of its own execution and mints tokens for it.
 *
 * Invariants: the credential names the execution, so a request cannot; what it does not cover cannot be asked for. Once the turn is
 * over it covers nothing.
 */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument } from "../base/errors.ts";
import type { Seq } from "../base/ids.ts";
import { encodeEvent } from "../canon/index.ts";
import type { Event } from "../gen/agentsessions/v1/common_pb.ts";
import {
  HistoryPageSchema,
  MintTokenResponseSchema,
  type HistoryPage,
  type MintTokenRequest,
  type MintTokenResponse,
  type ReadHistoryRequest,
} from "../gen/holdfast/v1/harness_wire_pb.ts";
import { expiresUnixOf, type HistoryPage as SpiPage, type Start } from "../spi/index.ts";
import type { CallContext, HarnessHostService } from "./contract.ts";

/** A page ends at about this size. A single event may be as large as a record. */
const PAGE_BYTES_SOFT_MAX = 256 * 1024;

/** The service; it holds nothing, since everything is the execution's. */
export function createHarnessHostService(): HarnessHostService {
  return { readHistory, mintToken };
}

async function* readHistory(request: ReadHistoryRequest, context: CallContext): AsyncGenerator<HistoryPage, void, undefined> {
  const { history } = executionOf(context);
  const fromSeq = seqOf("from_seq", request.fromSeq) ?? (1 as Seq);
  const toSeq = seqOf("to_seq", request.toSeq) ?? history.lastSeq;
  if (toSeq > history.lastSeq) throw invalidArgument("to_seq", `must be at most ${history.lastSeq}, the last event before the execution`);
  if (fromSeq <= toSeq) {
    for await (const page of history.read({ fromSeq, toSeq, signal: context.signal })) {
      // The execution may have ended meanwhile, and its credential with it.
      executionOf(context);
      yield* pagesOf(page);
    }
  }
  yield create(HistoryPageSchema, { last: true });
}

/** A page of history as messages of a bounded size: what is kept decoded may be one page of many megabytes. */
function* pagesOf({ firstSeq, events }: SpiPage): Generator<HistoryPage, void, undefined> {
  let page: Event[] = [];
  let bytes = 0;
  for (const [index, event] of events.entries()) {
    page.push(event);
    bytes += encodeEvent(event).length;
    if (bytes < PAGE_BYTES_SOFT_MAX && index + 1 < events.length) continue;
    yield create(HistoryPageSchema, { firstSeq: BigInt(firstSeq + index + 1 - page.length), events: page });
    page = [];
    bytes = 0;
  }
}

async function mintToken(request: MintTokenRequest, context: CallContext): Promise<MintTokenResponse> {
  const { mintToken: mint } = executionOf(context).identity;
  if (mint === undefined) throw new HoldfastError("failed_precondition", "host: it has no key to sign tokens with");
  const token = await mint(request.audience, { signal: context.signal });
  return create(MintTokenResponseSchema, { token, expiresUnix: BigInt(expiresUnixOf(token)) });
}

function executionOf({ caller, signal }: CallContext): Start {
  signal.throwIfAborted();
  if (caller.execution === undefined) {
    throw new HoldfastError("unauthenticated", "authorization: needs the credential of an execution that runs here", {
      field: "authorization",
    });
  }
  return caller.execution;
}

function seqOf(field: string, value: bigint): Seq | undefined {
  if (value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalidArgument(field, "must be a seq, or 0");
  return value === 0n ? undefined : (Number(value) as Seq);
}
