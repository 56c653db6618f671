/** The Journal service: what Holdfast adds for readers of a journal. */

import { create } from "@bufbuild/protobuf";
import { HoldfastError, sessionUidOf, type Ports, type Seq, type SignatureCheck, type Signer } from "../base/index.ts";
import type { Controller } from "../controller/index.ts";
import {
  ChainFault_Kind,
  ChainFaultSchema,
  VerifyResponseSchema,
  type VerifyRequest,
  type VerifyResponse,
} from "../gen/holdfast/v1/journal_pb.ts";
import {
  createChainVerifier,
  type ChainFault,
  type ChainFaultKind,
  type ChainVerdict,
  type Head,
  type JournalStore,
  type SessionRow,
} from "../journal/index.ts";
import type { Authorizer, HarnessCatalog, ToolExecutor } from "../spi/index.ts";
import { checkReplay } from "./check-replay.ts";
import { accessSession, type SessionAccess } from "./access.ts";
import type { CallContext, JournalService } from "./contract.ts";
import { lineage } from "./lineage.ts";
import { tail } from "./tail.ts";
import { Transfers, type TransferLimits } from "./transfer.ts";

/** What the service is made of. */
export interface JournalServiceOptions {
  readonly journal: JournalStore;
  readonly controller: Controller;
  readonly harnesses: HarnessCatalog;
  readonly authorizer: Authorizer;
  readonly ports: Ports;
  /** The host's tools, for what a check of replays may refuse again; it runs none. */
  readonly tools?: Pick<ToolExecutor, "find" | "check"> | undefined;
  /** Signs the heads of exports; undefined leaves them unsigned. */
  readonly signer?: Signer | undefined;
  /** Checks the signatures of imports; undefined refuses those that have some. */
  readonly signatures?: SignatureCheck | undefined;
  readonly transferLimits?: Partial<TransferLimits> | undefined;
  /** Whether harnesses mint tokens here; in a replay they then get one that is good for nothing. */
  readonly canMintTokens?: boolean | undefined;
}

/** Creates the handlers of `holdfast.v1.Journal`. */
export function createJournalService(options: JournalServiceOptions): JournalService {
  const host = { ...options, clock: options.ports.clock };
  const transfers = new Transfers({ ...options, limits: options.transferLimits });
  return {
    tail: (request, context) => tail(host, request, context),
    verify: (request, context) => verify({ ...host, ports: options.ports }, request, context),
    checkReplay: (request, context) => checkReplay(options, request, context),
    lineage: (request, context) => lineage(options, request, context),
    export: (request, context, form = "binary") => transfers.export(request, context, form),
    import: (requests, context) => transfers.import(requests, context),
    signHead: (request, context) => transfers.signHead(request, context),
  };
}

interface VerifyContext extends SessionAccess {
  readonly ports: Ports;
}

/** Verifies the chain up to the head that the row named when the call arrived; records that follow meanwhile are not looked at. */
async function verify(host: VerifyContext, request: VerifyRequest, context: CallContext): Promise<VerifyResponse> {
  const session = sessionUidOf(request.session, "session");
  const row = await accessSession(host, "session.read", session, "session", context);
  const head = headOf(row);
  const toSeq = row.keptSeq ?? row.projection.lastSeq;
  const verifier = createChainVerifier(host.ports.digest);
  if (toSeq > 0) {
    try {
      for await (const page of host.journal.read({ session, toSeq, signal: context.signal })) {
        if (verifier.pushPage(page) !== undefined) break;
      }
    } catch (error) {
      // A store that finds its own records damaged has answered the question.
      if (error instanceof HoldfastError && error.code === "data_loss") return unreadable(verifier.finish());
      throw error;
    }
  }
  const verdict = verifier.finish(head);
  if (verdict.kind === "broken") await refuseReclaimed(host, row);
  return answerOf(verdict);
}

/** Throws ABORTED when the session was reclaimed since `row` was read: what is missing then is no fault. */
async function refuseReclaimed(host: VerifyContext, row: SessionRow): Promise<void> {
  const now = await host.journal.get(row.seed.uid);
  if (now !== undefined && now.keptSeq === row.keptSeq) return;
  throw new HoldfastError("aborted", "session: it was reclaimed while it was read");
}

/** The head that the chain must end at; of a session that is there in part nobody knows the hash. */
function headOf({ keptSeq, projection }: SessionRow): Head | undefined {
  if (keptSeq !== undefined && keptSeq < projection.lastSeq) return undefined;
  return { seq: projection.lastSeq, hash: projection.headHash };
}

function answerOf(verdict: ChainVerdict): VerifyResponse {
  return create(VerifyResponseSchema, {
    intact: verdict.kind === "intact",
    records: BigInt(verdict.records),
    headSeq: BigInt(verdict.head.seq),
    headHash: verdict.head.hash,
    ...(verdict.kind === "broken" ? { fault: faultOf(verdict.fault) } : {}),
  });
}

function unreadable(sofar: ChainVerdict): VerifyResponse {
  if (sofar.kind === "broken") return answerOf(sofar);
  const seq = (sofar.head.seq + 1) as Seq;
  const fault: ChainFault = {
    kind: "unreadable",
    seq,
    expected: "a record that the store can read",
    found: "the store says it is damaged",
  };
  return answerOf({ ...sofar, kind: "broken", fault });
}

function faultOf(fault: ChainFault) {
  return create(ChainFaultSchema, { ...fault, seq: BigInt(fault.seq), kind: FAULT_KINDS[fault.kind] });
}

const FAULT_KINDS: Readonly<Record<ChainFaultKind, ChainFault_Kind>> = {
  seq: ChainFault_Kind.SEQ,
  "prev-hash": ChainFault_Kind.PREV_HASH,
  "content-hash": ChainFault_Kind.CONTENT_HASH,
  unreadable: ChainFault_Kind.UNREADABLE,
  head: ChainFault_Kind.HEAD,
};
