/** Sessions in one file: writing, reading, verifying and taking over. Pure but for the ports. */

export { ArchiveDecoder } from "./decoder.ts";
export { createArchiveEncoder, type ArchiveEncoder } from "./encoder.ts";
export { exportSessions, type ExportContext, type ExportRequest } from "./export.ts";
export { importSessions, type ImportContext, type ImportedSession, type ImportOptions, type ImportReport } from "./import.ts";
export { isMalformed, type ArchiveForm, type ArchiveItem, type SessionFacts } from "./item.ts";
export type { LandingOutcome } from "./landing.ts";
export * from "./limits.ts";
export { LineReader, type Line } from "./line-reader.ts";
export { recordOfLine, recordsOfDocument } from "./plain-records.ts";
export { checkSignature, fingerprintOf, KEY_ID_DIGITS, plainHead, signedBytes, signHead, type HeadSignature } from "./signed-head.ts";
export { parseTrustedKeys, type TrustedKeys } from "./trusted-keys.ts";
export {
  ArchiveVerifier,
  type ArchiveFault,
  type ArchiveFaultKind,
  type ArchiveVerdict,
  type ArchiveVerifierOptions,
  type HeadTrust,
  type SessionVerdict,
} from "./verify.ts";
