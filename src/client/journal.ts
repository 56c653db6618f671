/** `holdfast.v1.Journal` for callers. */

import { create } from "@bufbuild/protobuf";
import { Journal, VerifyRequestSchema, type VerifyResponse } from "../gen/holdfast/v1/journal_pb.ts";
import {
  ExportRequestSchema,
  ImportRequestSchema,
  SignHeadRequestSchema,
  type ImportRequest,
  type ImportResponse,
  type SignedHead,
} from "../gen/holdfast/v1/export_pb.ts";
import { LineageRequestSchema, type LineageResponse } from "../gen/holdfast/v1/lineage_pb.ts";
import { checkReplay, type CheckReplayOptions, type ReplayCheck } from "./checks.ts";
import type { StreamItem } from "./items.ts";
import { tail, type TailOptions } from "./tail.ts";
import type { CallOptions, Transport } from "./transport.ts";

/** How long a verification may take when the caller names no time: it reads the whole journal. */
const VERIFY_TIMEOUT_MS = 600_000;

/** Bytes of one request of an import at most. */
const IMPORT_PIECE_BYTES_MAX = 256 * 1024;

async function* requestsOf(file: AsyncIterable<Uint8Array>): AsyncGenerator<ImportRequest, void, undefined> {
  for await (const piece of file) {
    for (let at = 0; at < piece.length; at += IMPORT_PIECE_BYTES_MAX) {
      yield create(ImportRequestSchema, { data: piece.subarray(at, at + IMPORT_PIECE_BYTES_MAX) });
    }
  }
}

/** What to export. */
export interface ExportOptions extends CallOptions {
  /** Everything that has an ancestor in common with the session, as far as it is not deleted. Default: the session alone. */
  readonly family?: boolean | undefined;
}

/** How much of a family to read. */
export interface LineageOptions extends CallOptions {
  /** Members at most: 1 to 10,000. Default 1,000. */
  readonly rowsMax?: number | undefined;
}

/** The Journal calls. Each rejects with a HoldfastError that has the server's code, message and field. */
export class JournalClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Follows a session from a cursor: the session first, then records and deltas as they come. A lost connection is made anew and
   * the stream goes on at the next seq: no record is lost or repeated. After that the session comes once more, and deltas of
   * the time between are missing.
   */
  tail(session: string, options: TailOptions = {}): AsyncGenerator<StreamItem, void, undefined> {
    return tail(this.#transport, session, options);
  }

  /** Has the server verify a session's chain from the first record to the head. A broken chain is an answer, not an error. */
  verify(session: string, options: CallOptions = {}): Promise<VerifyResponse> {
    const { signal, timeoutMs = VERIFY_TIMEOUT_MS } = options;
    return this.#transport.unary(Journal.method.verify, create(VerifyRequestSchema, { session }), { signal, timeoutMs });
  }

  /**
   * Has the server run every ended turn of a session again, oldest first, and say of each whether its harness asked for what is
   * recorded (I0). No model and no tool is called and nothing is written (I1). A divergence is an item, not an error.
   */
  checkReplay(session: string, options: CheckReplayOptions = {}): AsyncGenerator<ReplayCheck, void, undefined> {
    return checkReplay(this.#transport, session, options);
  }

  /**
   * The family of a session, whichever member it is: the oldest ancestor first, each member after its parent, deleted ones too.
   * `truncated` says that there are more.
   */
  lineage(session: string, { rowsMax = 0, ...options }: LineageOptions = {}): Promise<LineageResponse> {
    return this.#transport.unary(Journal.method.lineage, create(LineageRequestSchema, { session, rowsMax }), options);
  }

  /**
   * A session as a file in binary form, piece by piece; its pieces are not the file's frames. It can be verified without a server and
   * imported on another one. A file that was cut off is found out when it is read.
   */
  async *export(session: string, { family = false, ...options }: ExportOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const request = create(ExportRequestSchema, { session, family });
    for await (const { data } of this.#transport.stream(Journal.method.export, request, options)) yield data;
  }

  /**
   * Takes over the sessions of an export, in either form and in pieces of any length. It can be repeated: what is there stays. Rejects
   * with ALREADY_EXISTS where a session of another content has the uid, or another session the name.
   */
  import(file: AsyncIterable<Uint8Array>, options: CallOptions = {}): Promise<ImportResponse> {
    return this.#transport.upload(Journal.method.import, requestsOf(file), options);
  }

  /** The session's head, signed by the server. Kept elsewhere, it shows later whether the session is still the same up to there. */
  signHead(session: string, options: CallOptions = {}): Promise<SignedHead> {
    return this.#transport.unary(Journal.method.signHead, create(SignHeadRequestSchema, { session }), options);
  }
}
