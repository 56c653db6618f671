/** A socket whose bytes leave in pieces of any size, so that frames are split anywhere, and between which a test puts bytes of its own. */

import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Dice } from "../../../src/testing/dice.ts";

/** A piece at most; some of one write are much smaller. */
const PIECE_BYTES_MAX = 16_384;
/** Pieces of one write; what is left goes as a whole. */
const PIECES_MAX = 4;

export class ChoppedSocket extends Duplex {
  readonly #socket: Socket;
  readonly #dice: Dice | undefined;

  /** Without dice bytes leave as they come. */
  constructor(address: string, dice?: Dice) {
    super({ allowHalfOpen: false });
    const [host = "", port = ""] = address.split(":");
    this.#dice = dice;
    this.#socket = connect({ host, port: Number(port), noDelay: true });
    this.#socket.on("data", (chunk: Buffer) => {
      // What is pushed may be asked for more within the push.
      this.#socket.pause();
      this.push(chunk);
    });
    this.#socket.on("end", () => this.push(null));
    this.#socket.on("error", () => this.destroy());
    this.#socket.on("close", () => this.destroy());
  }

  /** Puts bytes on the line, whatever stands there. */
  inject(bytes: Uint8Array): void {
    if (!this.#socket.destroyed) this.#socket.write(bytes);
  }

  /** Ends this side of the line. */
  hangUp(): void {
    this.#socket.end();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const pieces = this.#dice === undefined ? [chunk] : piecesOf(chunk, this.#dice);
    const send = (): void => {
      const piece = pieces.shift();
      if (piece === undefined || this.#socket.destroyed) return done();
      this.#socket.write(piece);
      // The other end reads this piece before the next one comes, mostly.
      if (pieces.length > 0) setImmediate(send);
      else done();
    };
    send();
  }

  override _final(done: () => void): void {
    this.#socket.end();
    done();
  }

  override _destroy(_error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(null);
  }
}

function piecesOf(chunk: Buffer, dice: Dice): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (let count = dice.below(PIECES_MAX); count > 0 && at < chunk.length; count--) {
    const bytes = 1 + dice.below(Math.min(dice.pick([4, 32, PIECE_BYTES_MAX]), chunk.length - at));
    pieces.push(chunk.subarray(at, at + bytes));
    at += bytes;
  }
  if (at < chunk.length) pieces.push(chunk.subarray(at));
  return pieces;
}
