/**
 * The services' limits. Each is documented in `docs/limits.md` and tested at its edge.
 *
 * A field whose text has the wrong form (too long, control characters) is INVALID_ARGUMENT; too many or too large things of a right
 * form are RESOURCE_EXHAUSTED.
 */

import { CONTROLLER_LIMITS } from "../controller/index.ts";

export interface ServiceLimits {
  /** Characters of a project's or a session's name. */
  readonly nameCharsMax: number;
  /** Characters of a harness's or a model's name. */
  readonly resourceCharsMax: number;
  /** Labels of one session. */
  readonly labelsMax: number;
  /** Annotations of one session. */
  readonly annotationsMax: number;
  /** Characters of a label's or an annotation's key. */
  readonly keyCharsMax: number;
  /** Characters of a label's value. */
  readonly labelValueCharsMax: number;
  /** UTF-8 bytes of all annotations of one session, keys and values. */
  readonly annotationsBytesMax: number;
  /** Characters of each text of an identity or an origin. */
  readonly provenanceCharsMax: number;
  /** Attributes of an origin. */
  readonly originAttributesMax: number;
  /** Messages of one Exec. */
  readonly inputsMax: number;
  /** Parts of one message. */
  readonly partsMax: number;
  /** Bytes of `config`. */
  readonly configBytesMax: number;
  /** How deep messages, parts and structs of a request may be nested. */
  readonly nestingMax: number;
  /** Sessions of a page when the caller names no number. */
  readonly pageSizeDefault: number;
  /** Sessions of a page at most; a larger number means this one. */
  readonly pageSizeMax: number;
  /** The size at which a page of sessions ends early, in bytes. */
  readonly pageBytesSoftMax: number;
}

export const SERVICE_LIMITS: ServiceLimits = {
  nameCharsMax: 128,
  resourceCharsMax: 256,
  labelsMax: 64,
  annotationsMax: 64,
  keyCharsMax: 128,
  labelValueCharsMax: 256,
  annotationsBytesMax: 64 * 1024,
  provenanceCharsMax: 1_024,
  originAttributesMax: 64,
  inputsMax: CONTROLLER_LIMITS.inputsMax,
  partsMax: 1_024,
  configBytesMax: CONTROLLER_LIMITS.configBytesMax,
  nestingMax: 64,
  pageSizeDefault: 50,
  pageSizeMax: 500,
  pageBytesSoftMax: 1024 * 1024,
};
