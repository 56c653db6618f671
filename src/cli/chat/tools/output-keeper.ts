/**
 * The beginning and the end of what a command writes.
 *
 * Invariant: it never keeps more than about 64 KiB, however much is written.
 */

const HEAD_BYTES = 16 * 1024;
const TAIL_BYTES = 48 * 1024;

export class OutputKeeper {
  #head = Buffer.alloc(0);
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #bytes = 0;

  /** Whether something in the middle was left out. */
  get isCut(): boolean {
    return this.#bytes > HEAD_BYTES + TAIL_BYTES;
  }

  add(bytes: Buffer): void {
    this.#bytes += bytes.length;
    const room = HEAD_BYTES - this.#head.length;
    if (room > 0) this.#head = Buffer.concat([this.#head, bytes.subarray(0, room)]);
    const rest = bytes.subarray(Math.max(0, room));
    if (rest.length === 0) return;
    this.#tail.push(rest.length > TAIL_BYTES ? Buffer.from(rest.subarray(-TAIL_BYTES)) : rest);
    this.#tailBytes += Math.min(rest.length, TAIL_BYTES);
    for (let first = this.#tail[0]; first !== undefined && this.#tailBytes - first.length >= TAIL_BYTES; first = this.#tail[0]) {
      this.#tail.shift();
      this.#tailBytes -= first.length;
    }
  }

  /** What was kept, with a word about what was not. */
  get text(): string {
    const tail = Buffer.concat(this.#tail);
    if (!this.isCut) return Buffer.concat([this.#head, tail]).toString("utf8").toWellFormed();
    const kept = tail.subarray(-TAIL_BYTES);
    const left = this.#bytes - this.#head.length - kept.length;
    return `${this.#head.toString("utf8")}\n[${left} bytes left out]\n${kept.toString("utf8")}`.toWellFormed();
  }
}
