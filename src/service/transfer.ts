/**
 * Export, Import and SignHead: sessions as a file, out of a journal and into one.
 *
 * Invariants:
 * - Nobody gets a record of a session that they may not export, shared prefixes included, and nobody's import touches a project that
 *   they may not import into.
 * - Neither direction holds more than a page of records in memory, whatever the length of the file.
 */

import { create } from "@bufbuild/protobuf";
import {
  createArchiveEncoder,
  exportSessions,
  importSessions,
  signHead as signHeadOf,
  type ArchiveForm,
  type ImportReport,
  type LandingOutcome,
} from "../archive/index.ts";
import { HoldfastError } from "../base/errors.ts";
import { sessionUidOf } from "../base/ids.ts";
import type { Clock, Ports, SignatureCheck, Signer } from "../base/ports.ts";
import {
  ImportedSession_Outcome as Outcome,
  ImportResponseSchema,
  type ExportRequest,
  type ImportRequest,
  type ImportResponse,
  type SignedHead,
  type SignHeadRequest,
} from "../gen/holdfast/v1/export_pb.ts";
import { accessSession, authorize, type SessionAccess } from "./access.ts";
import type { CallContext } from "./contract.ts";

/** The limits of transfers. Each is documented in `docs/limits.md` and tested at its edge. */
export interface TransferLimits {
  /** Bytes of one import. */
  readonly importBytesMax: number;
  /** How long an import waits for its sender's next piece. */
  readonly importIdleMs: number;
  /** Imports and exports that are under way at once. */
  readonly transfersMax: number;
  /** Bytes of a piece of an export at most. */
  readonly pieceBytesMax: number;
}

export const TRANSFER_LIMITS: TransferLimits = {
  importBytesMax: 64 * 1024 * 1024 * 1024,
  importIdleMs: 60_000,
  transfersMax: 16,
  pieceBytesMax: 256 * 1024,
};

/** What transfers need. */
export interface TransferContext extends SessionAccess {
  readonly ports: Ports;
  /** Signs heads; undefined where there is no key. */
  readonly signer?: Signer | undefined;
  /** Checks the heads of imports; undefined refuses those that are signed. */
  readonly signatures?: SignatureCheck | undefined;
  readonly limits?: Partial<TransferLimits> | undefined;
}

/** The transfers of one host. */
export class Transfers {
  readonly #host: TransferContext;
  readonly #limits: TransferLimits;
  #running = 0;

  constructor(host: TransferContext) {
    this.#host = host;
    this.#limits = { ...TRANSFER_LIMITS, ...host.limits };
  }

  /** See `JournalService.export`. */
  async *export(request: ExportRequest, context: CallContext, form: ArchiveForm): AsyncGenerator<Uint8Array, void, undefined> {
    const host = this.#host;
    const session = sessionUidOf(request.session, "session");
    const row = await accessSession(host, "session.export", session, "session", context);
    using _ = this.#begin();
    const encoder = createArchiveEncoder(form);
    const { clock, digest } = host.ports;
    const items = exportSessions(
      { journal: host.journal, clock, digest, signer: host.signer },
      {
        row,
        family: request.family,
        signal: context.signal,
        allow: ({ seed }) => authorize(host.authorizer, "session.export", { project: seed.project, session: seed.uid }, context),
      },
    );
    for await (const some of items) {
      context.signal.throwIfAborted();
      yield* cut(encoder.encode(some), this.#limits.pieceBytesMax);
    }
  }

  /** See `JournalService.import`. */
  async import(requests: AsyncIterable<ImportRequest>, context: CallContext): Promise<ImportResponse> {
    const host = this.#host;
    using _ = this.#begin();
    const chunks = within(requests, this.#limits, host.ports.clock);
    const report = await importSessions(
      { journal: host.journal, digest: host.ports.digest, signatures: host.signatures ?? UNABLE },
      chunks,
      {
        signal: context.signal,
        allow: ({ seed }) => authorize(host.authorizer, "session.import", { project: seed.project, session: seed.uid }, context),
      },
    );
    return responseOf(report);
  }

  /** See `JournalService.signHead`. */
  async signHead(request: SignHeadRequest, context: CallContext): Promise<SignedHead> {
    const { ports, signer } = this.#host;
    const session = sessionUidOf(request.session, "session");
    const row = await accessSession(this.#host, "session.export", session, "session", context);
    if (signer === undefined)
      throw new HoldfastError("failed_precondition", "host: it has no key to sign with; HOLDFAST_SIGNING_KEY_FILE names one");
    if (row.keptSeq !== undefined) {
      throw new HoldfastError("failed_precondition", "session: only a prefix of it is here, which has no head", { field: "session" });
    }
    const { lastSeq, headHash } = row.projection;
    return signHeadOf(session, { seq: lastSeq, hash: headHash }, signer, ports.digest, ports.clock.nowMs());
  }

  #begin(): Disposable {
    const { transfersMax } = this.#limits;
    if (this.#running >= transfersMax) {
      throw new HoldfastError("resource_exhausted", `host: ${transfersMax} exports and imports are under way; try again later`);
    }
    this.#running += 1;
    return { [Symbol.dispose]: () => void (this.#running -= 1) };
  }
}

/** For a host without a check: what cannot be checked is not taken. */
const UNABLE: SignatureCheck = {
  isSignature: () => {
    throw new HoldfastError("failed_precondition", "file: its heads are signed, and this host cannot check signatures");
  },
};

function* cut(bytes: Uint8Array, bytesMax: number): Generator<Uint8Array, void, void> {
  for (let at = 0; at < bytes.length; at += bytesMax) yield bytes.subarray(at, at + bytesMax);
}

/** The pieces of an import, as long as they come in time and are not too many. */
async function* within(
  requests: AsyncIterable<ImportRequest>,
  { importBytesMax, importIdleMs }: TransferLimits,
  clock: Clock,
): AsyncGenerator<Uint8Array, void, undefined> {
  const pieces = requests[Symbol.asyncIterator]();
  let bytes = 0;
  try {
    for (
      let next = await inTime(pieces.next(), importIdleMs, clock);
      next.done !== true;
      next = await inTime(pieces.next(), importIdleMs, clock)
    ) {
      bytes += next.value.data.length;
      if (bytes > importBytesMax)
        throw new HoldfastError("resource_exhausted", `file: takes more than ${importBytesMax} bytes`, { field: "file" });
      yield next.value.data;
    }
  } finally {
    // A sender that stalls would keep this waiting for its next piece.
    pieces.return?.().catch(() => undefined);
  }
}

async function inTime<T>(piece: Promise<T>, idleMs: number, clock: Clock): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = clock.after(idleMs, () => {
    late.reject(new HoldfastError("deadline_exceeded", `file: no piece of it came for ${idleMs / 1000} s`, { field: "file" }));
  });
  try {
    return await Promise.race([piece, late.promise]);
  } finally {
    timer.cancel();
  }
}

const OUTCOMES: Readonly<Record<LandingOutcome, Outcome>> = {
  created: Outcome.CREATED,
  continued: Outcome.CONTINUED,
  unchanged: Outcome.UNCHANGED,
  prefix: Outcome.PREFIX,
};

function responseOf({ sessions, recordsAdded }: ImportReport): ImportResponse {
  return create(ImportResponseSchema, {
    sessions: sessions.map(({ uid, outcome, lastSeq, headHash }) => ({
      uid,
      outcome: OUTCOMES[outcome],
      lastSeq: BigInt(lastSeq),
      headHash,
    })),
    recordsAdded: BigInt(recordsAdded),
  });
}
