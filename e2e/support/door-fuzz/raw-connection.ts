/** A connection whose HTTP/2 is made by hand, right and wrong, and which listens to nothing. */

import { connect } from "node:net";
import { once } from "node:events";
import type { Dice } from "../../../src/testing/dice.ts";
import { anySaying } from "../door-sayings.ts";
import { framed, requestBytes, STREAM_PATH } from "./wire-stream.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const TYPE = { data: 0, headers: 1, priority: 2, reset: 3, settings: 4, push: 5, ping: 6, goaway: 7, window: 8, continuation: 9 } as const;
const END_STREAM = 1;
const END_HEADERS = 4;
const PADDED = 8;

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Fields as HPACK's literals, which need no table. */
function fields(named: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(named).flatMap(([name, value]) => [
      Buffer.of(0x10, name.length),
      Buffer.from(name, "latin1"),
      Buffer.of(value.length),
      Buffer.from(value, "latin1"),
    ]),
  );
}

const CALL = {
  ":method": "POST",
  ":scheme": "http",
  ":path": STREAM_PATH,
  ":authority": "door",
  "content-type": "application/grpc",
  te: "trailers",
};

function opening(dice: Dice, stream: number): Buffer {
  const odd = dice.pick<Readonly<Record<string, string>>>([
    {},
    {},
    {},
    { "grpc-timeout": "soon" },
    { "grpc-timeout": "1m" },
    { ":method": "GET" },
    { TE: "x" },
  ]);
  return frame(TYPE.headers, END_HEADERS, stream, fields({ ...CALL, ...odd }));
}

/** A request in DATA frames that are cut anywhere, and padded or not. */
function message(dice: Dice, stream: number): Buffer[] {
  const bytes = framed(requestBytes(anySaying(dice, { ids: ["c1"] })).subarray(0, 8_000));
  const at = dice.below(bytes.length);
  return [bytes.subarray(0, at), bytes.subarray(at)].map((piece) => {
    if (dice.below(3) > 0) return frame(TYPE.data, 0, stream, piece);
    const padding = dice.below(200);
    return frame(TYPE.data, PADDED, stream, Buffer.concat([Buffer.of(padding), piece, Buffer.alloc(padding)]));
  });
}

/** Frames that mean something, and frames that may not come. */
function anyFrames(dice: Dice, stream: number): Buffer[] {
  const junk = Buffer.from(dice.bytes(dice.below(64)));
  switch (dice.below(13)) {
    case 0:
      return [frame(TYPE.reset, 0, stream, Buffer.of(0, 0, 0, dice.below(16)))];
    case 1:
      return [frame(TYPE.window, 0, dice.pick([0, stream]), Buffer.of(0, 0, 0, dice.below(2)))];
    case 2:
      return [frame(TYPE.data, END_STREAM, stream)];
    case 3:
      return [frame(TYPE.ping, dice.below(2), 0, Buffer.alloc(8))];
    case 4:
      return [frame(TYPE.data, 0, dice.pick([0, stream, stream + 2, 2]), junk)];
    case 5:
      return [frame(dice.pick([TYPE.continuation, TYPE.push, TYPE.priority, 42]), dice.below(256), dice.pick([0, stream]), junk)];
    case 6:
      return [frame(TYPE.settings, dice.below(2), 0, junk)];
    case 7:
      return [frame(TYPE.headers, END_HEADERS, stream, junk)];
    default:
      return message(dice, stream);
  }
}

/** Says such things over a connection of its own, and ends it. Resolves with whether the other end let go of it in time. */
export async function sayRaw(address: string, dice: Dice, timeoutMs: number): Promise<boolean> {
  const [host = "", port = ""] = address.split(":");
  const socket = connect({ host, port: Number(port), noDelay: true });
  socket.on("error", () => undefined);
  socket.resume();
  const closed = once(socket, "close", { signal: AbortSignal.timeout(timeoutMs) }).then(
    () => true,
    () => false,
  );
  const bytes = [PREFACE, frame(TYPE.settings, 0, 0)];
  for (let stream = 1; stream < 2 * (1 + dice.below(4)); stream += 2) {
    bytes.push(opening(dice, stream), ...message(dice, stream));
    for (let count = dice.below(6); count > 0; count--) bytes.push(...anyFrames(dice, stream));
  }
  // Only as the last one: a connection that breaks the protocol after it has said goodbye is found by the next ping, which takes long.
  if (dice.below(4) === 0) bytes.push(frame(TYPE.goaway, 0, 0, Buffer.alloc(8)));
  const all = Buffer.concat(bytes);
  const end = dice.below(4) === 0 ? dice.below(all.length) : all.length;
  socket.write(all.subarray(0, end));
  if (dice.below(3) === 0) socket.resetAndDestroy();
  else socket.end();
  return closed;
}
