/** Exports as whole files in memory, for tests. */

import type { SessionUid, SignatureCheck, Signer } from "../base/index.ts";
import {
  ArchiveDecoder,
  ArchiveVerifier,
  createArchiveEncoder,
  exportSessions,
  importSessions,
  type ArchiveForm,
  type ArchiveItem,
  type ArchiveVerdict,
  type ArchiveVerifierOptions,
  type ImportReport,
} from "../archive/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { testDigest, VirtualClock } from "./ports.ts";

/** How to export. */
export interface ExportOptions {
  readonly form?: ArchiveForm | undefined;
  readonly family?: boolean | undefined;
  readonly signer?: Signer | undefined;
  readonly clock?: VirtualClock | undefined;
}

/** A session of a journal as a file. */
export async function exportedFile(journal: JournalStore, session: SessionUid, options: ExportOptions = {}): Promise<Buffer> {
  return fileOf(await exportedItems(journal, session, options), options.form ?? "lines");
}

/** A session of a journal as items. */
export async function exportedItems(journal: JournalStore, session: SessionUid, options: ExportOptions = {}): Promise<ArchiveItem[]> {
  const { family = false, signer, clock = new VirtualClock() } = options;
  const row = await journal.get(session);
  if (row === undefined) throw new Error(`there is no session ${session}`);
  const items: ArchiveItem[] = [];
  for await (const some of exportSessions({ journal, clock, digest: testDigest, signer }, { row, family })) items.push(...some);
  return items;
}

/** Items as a file. */
export function fileOf(items: readonly ArchiveItem[], form: ArchiveForm): Buffer {
  return Buffer.from(createArchiveEncoder(form).encode(items));
}

/** A file as items. */
export function itemsOf(file: Uint8Array): ArchiveItem[] {
  const decoder = new ArchiveDecoder();
  return [...decoder.push(file), ...decoder.finish()];
}

/** What a verifier says of a file. */
export function verdictOn(
  file: Uint8Array,
  options: Pick<ArchiveVerifierOptions, "signatures"> & Partial<ArchiveVerifierOptions>,
): ArchiveVerdict {
  const decoder = new ArchiveDecoder();
  const verifier = new ArchiveVerifier({ digest: testDigest, ...options });
  try {
    for (const item of decoder.push(file)) verifier.push(item);
    for (const item of decoder.finish()) verifier.push(item);
  } catch (error) {
    verifier.fail(error);
  }
  return verifier.finish();
}

/** A file in pieces of a length. */
export async function* cut(file: Uint8Array, length: number): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < file.length; at += length) yield file.subarray(at, at + length);
}

/** Imports a file. */
export async function importFile(
  journal: JournalStore,
  file: Uint8Array,
  signatures: SignatureCheck,
  pieceLength = 1_000,
): Promise<ImportReport> {
  return importSessions({ journal, digest: testDigest, signatures }, cut(file, pieceLength));
}
