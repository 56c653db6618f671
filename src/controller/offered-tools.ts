/**
 * The tools that a turn is offered: its own and the host's, as they are when the turn starts. They are kept beside the turn's start, so that a replay
 * and a recovery are offered the same ones, whatever tools the host has then.
 *
 * Invariants:
 * - What a harness is offered is what is kept. Where nothing is kept, nothing is offered.
 * - It costs what is new: a turn that is offered what an earlier one was names that one. It does so only where the journal still has that list
 *   there: a uid can come back with other records (reclaimed here, then imported again).
 */

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { deeplyFrozen } from "../base/frozen.ts";
import { seqOf, type Seq, type SessionUid } from "../base/ids.ts";
import type { Digest } from "../base/ports.ts";
import { encodeOfferedTools } from "../canon/index.ts";
import { ToolDefinitionSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { OfferedToolsSchema, type OfferedTools } from "../gen/holdfast/v1/beside_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import type { ToolDefinition, ToolExecutor } from "../spi/index.ts";

/** More definitions than that are not offered: those that come first in the executor's order are. */
const OFFER_BYTES_MAX = 512 * 1024;
/** Sessions whose last full list is remembered. */
const SESSIONS_MAX = 10_000;

/** What a turn is offered. */
export interface ToolOffer {
  readonly tools: readonly ToolDefinition[];
  /** What is kept beside its start. */
  readonly aside: Uint8Array;
  /** The start is durable, at `seq`. */
  readonly started: (seq: Seq) => void;
}

/** A list that is kept in full. */
interface KeptList {
  readonly seq: Seq;
  /** What it is of. */
  readonly key: string;
  /** The SHA-256 of what is kept beside that record. */
  readonly asideHash: string;
}

interface Measured {
  readonly bytes: number;
  readonly key: string;
}

/** Makes the offers of one controller's turns. */
export class ToolOffers {
  readonly #journal: Pick<JournalStore, "readAsides">;
  readonly #digest: Digest;
  readonly #measured = new WeakMap<ToolDefinition, Measured>();
  /** Where the list that a session was offered last is kept in full. */
  readonly #last = new Map<SessionUid, KeptList>();

  constructor(journal: Pick<JournalStore, "readAsides">, digest: Digest) {
    this.#journal = journal;
    this.#digest = digest;
  }

  /** What a turn of `session` is offered that starts now and has these tools; undefined where there are none. */
  async offer(session: SessionUid, executor: Pick<ToolExecutor, "list"> | undefined): Promise<ToolOffer | undefined> {
    const tools: ToolDefinition[] = [];
    let keys = "";
    let leftBytes = OFFER_BYTES_MAX;
    for (const { definition } of executor?.list() ?? []) {
      const { bytes, key } = this.#measure(definition);
      leftBytes -= bytes;
      if (leftBytes < 0) break;
      tools.push(definition);
      keys += key;
    }
    if (tools.length === 0) return undefined;
    const last = this.#last.get(session);
    if (last?.key === keys && (await this.#isThere(session, last))) {
      return { tools, aside: encodeOfferedTools({ sameAsSeq: BigInt(last.seq), tools: [] }), started: () => undefined };
    }
    const aside = encodeOfferedTools({ sameAsSeq: 0n, tools });
    const asideHash = this.#digest.sha256Hex(aside);
    return { tools, aside, started: (seq) => this.#remember(session, { seq, key: keys, asideHash }) };
  }

  async #isThere(session: SessionUid, { seq, asideHash }: KeptList): Promise<boolean> {
    const aside = (await this.#journal.readAsides({ session, fromSeq: seq, toSeq: seq })).get(seq);
    return aside !== undefined && this.#digest.sha256Hex(aside) === asideHash;
  }

  #measure(definition: ToolDefinition): Measured {
    const known = this.#measured.get(definition);
    if (known !== undefined) return known;
    const bytes = toBinary(ToolDefinitionSchema, definition);
    const measured = { bytes: bytes.length, key: this.#digest.sha256Hex(bytes) };
    this.#measured.set(definition, measured);
    return measured;
  }

  #remember(session: SessionUid, last: KeptList): void {
    this.#last.delete(session);
    this.#last.set(session, last);
    if (this.#last.size <= SESSIONS_MAX) return;
    for (const oldest of this.#last.keys()) {
      this.#last.delete(oldest);
      return;
    }
  }
}

/** What the turn that started at `seq` was offered; undefined where nothing is kept of it. */
export async function readOfferedTools(
  journal: JournalStore,
  session: SessionUid,
  seq: Seq,
): Promise<readonly ToolDefinition[] | undefined> {
  const kept = await keptAt(journal, session, seq);
  if (kept === undefined) return undefined;
  const sameAs = seqOf(kept.sameAsSeq);
  if (sameAs === 0) return kept.tools;
  return sameAs < seq ? (await keptAt(journal, session, sameAs))?.tools : undefined;
}

async function keptAt(journal: JournalStore, session: SessionUid, seq: Seq): Promise<OfferedTools | undefined> {
  const aside = (await journal.readAsides({ session, fromSeq: seq, toSeq: seq })).get(seq);
  return aside === undefined ? undefined : deeplyFrozen(fromBinary(OfferedToolsSchema, aside));
}
