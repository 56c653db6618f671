/**
 * The input hash of requests that continue one another: messages that a request begins with as an earlier one did are not hashed again.
 *
 * Invariants:
 * - The hash is the one that `inputHash` makes, and what it refuses is refused in the same words. What is remembered changes the time alone.
 * - A message counts as the one that was hashed only if it is the same object, or is made around the very same values, and these cannot have
 *   changed: they are frozen with all that is in them, but for bytes, which cannot be frozen and are compared.
 */

import { isSameBytes } from "../base/bytes.ts";
import { isDeeplyFrozen } from "../base/frozen.ts";
import type { Digest, RunningHash } from "../base/ports.ts";
import type { Message } from "../gen/agentsessions/v1/common_pb.ts";
import { headJson, inputHash, messageAtJson, tailJson, type HashedRequest } from "./input-hash.ts";

/** Bytes of a message, as they were when it was hashed. */
interface KnownBytes {
  readonly bytes: Uint8Array;
  readonly copy: Uint8Array;
}

/** The beginning of requests to one model: messages that cannot change. It grows. */
export class InputPrefix {
  readonly #model: string;
  readonly #digest: Digest;
  readonly #messages: Message[] = [];
  readonly #bytes: KnownBytes[] = [];
  /** Of the text up to the last of its messages. */
  #hash: RunningHash | undefined;
  #size = 0;

  constructor(model: string, digest: Digest) {
    this.#model = model;
    this.#digest = digest;
  }

  /** How many messages it has. */
  get length(): number {
    return this.#messages.length;
  }

  /** What it keeps in memory, about: the characters of its messages' text, and their bytes. */
  get size(): number {
    return this.#size;
  }

  /**
   * Whether the request begins with all of it. A message that was made anew around the same values is known by the newer object from then on.
   */
  isBeginningOf({ model, messages }: HashedRequest): boolean {
    const known = this.#messages;
    if (model !== this.#model || messages.length < known.length) return false;
    for (let index = 0; index < known.length; index++) {
      const message = messages[index]!;
      if (known[index] === message) continue;
      if (!isSameMessage(known[index]!, message)) return false;
      if (isDeeplyFrozen(message)) known[index] = message;
    }
    return this.#bytes.every(({ bytes, copy }) => isSameBytes(bytes, copy));
  }

  /** Takes in the messages behind it that cannot change, up to the first one that can; no further than to `sizeMax`. */
  extend({ messages }: HashedRequest, sizeMax: number): void {
    const taken: Message[] = [];
    const found: Uint8Array[] = [];
    let text = this.#hash === undefined ? headJson(this.#model) : "";
    let takenSize = this.#size;
    for (let index = this.#messages.length; index < messages.length; index++) {
      const message = messages[index]!;
      const bytes: Uint8Array[] = [];
      if (!isDeeplyFrozen(message, bytes)) break;
      const messageText = messageAtJson(message, index);
      const size = bytes.reduce((sum, { length }) => sum + length, takenSize + messageText.length);
      if (size > sizeMax) break;
      text += messageText;
      taken.push(message);
      for (const each of bytes) found.push(each);
      takenSize = size;
    }
    if (taken.length === 0) return;
    // A call for each message would cost more than to hash it.
    this.#hash ??= this.#digest.sha256();
    this.#hash.update(text);
    this.#size = takenSize;
    for (const message of taken) this.#messages.push(message);
    // The `slice` of a Node Buffer would share its memory, and never differ from it.
    for (const bytes of found) this.#bytes.push({ bytes, copy: new Uint8Array(bytes) });
  }

  /** The input hash of a request that begins with it. */
  inputHash(request: HashedRequest): string {
    if (this.#hash === undefined) return inputHash(request, this.#digest);
    const { messages } = request;
    let text = "";
    for (let index = this.#messages.length; index < messages.length; index++) text += messageAtJson(messages[index]!, index);
    const hash = this.#hash.copy();
    hash.update(`${text}]${tailJson(request)}`);
    return hash.hex();
  }
}

/** Whether `known`, which cannot change, says what `other` says, as far as can be told by looking at objects alone. */
function isSameMessage(known: Message, other: Message): boolean {
  if (known.role !== other.role || known.parts.length !== other.parts.length) return false;
  return known.parts.every(({ part }, index) => {
    const otherPart = other.parts[index]?.part;
    return otherPart !== undefined && part.case === otherPart.case && part.value === otherPart.value;
  });
}
