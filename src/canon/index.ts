/** Canonical bytes and hashes, exactly as `docs/canonical-form.md` states them. Pure and browser-safe. */

export { replaceLoneSurrogates } from "./checked-leaves.ts";
export { decodeLogRecord } from "./decode.ts";
export { encodeEvent, encodeLogRecord, encodeMessage, type RecordFields } from "./encode.ts";
export { encodeModelFacts, encodeOfferedTools, encodeRequestSketch, type FieldsOf } from "./encode-beside.ts";
export { canonicalEvent } from "./event-text.ts";
export { canonicalJson, canonicalRecord, contentHash, specDigest, type HashedRecord } from "./hash.ts";
export { inputHash, inputHashJson, type HashedRequest } from "./input-hash.ts";
export { InputPrefix } from "./input-prefix.ts";
export {
  normaliseEvent,
  normaliseMessage,
  normaliseToolCall,
  normaliseToolResult,
  wellFormedMessage,
  wellFormedToolResult,
} from "./normalise.ts";
export { readLogRecord, type RecordReading } from "./read-record.ts";
