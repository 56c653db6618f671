/** The ways in which a stream of a fuzz ends, and what `docs/agent-service.md` says of each. */

import { constants } from "node:http2";
import { deflateRawSync, gzipSync } from "node:zlib";
import type { Saying } from "../../../src/testing/door-client.ts";
import type { Dice } from "../../../src/testing/dice.ts";
import { framed, requestBytes, type DoorWire, type WireEnd, type WireStream } from "./wire-stream.ts";

const REQUEST_BYTES_MAX = 4 * 1024 * 1024;

const OK = 0;
const INVALID_ARGUMENT = 3;
const RESOURCE_EXHAUSTED = 8;
const INTERNAL = 13;

interface LeavingContext {
  readonly dice: Dice;
  readonly wire: DoorWire;
  readonly isCompressed: boolean;
}

export interface Leaving {
  readonly what: string;
  readonly leave: (stream: WireStream, context: LeavingContext) => void;
  /** What is said before. */
  readonly lastWords?: Saying | undefined;
  /** Statuses that it may end with; OK is one of them, since what went before may have ended it. */
  readonly ends: readonly (number | "broken")[];
}

/** Every way in which a stream ends. */
export const LEAVINGS: readonly [Leaving, ...Leaving[]] = [
  { what: "its client's end", ends: [OK], leave: (stream) => stream.finish() },
  {
    what: "its client's end after a cancel",
    ends: [OK],
    lastWords: { case: "cancelTurn", value: {} },
    leave: (stream) => stream.finish(),
  },
  { what: "a reset", ends: [OK, "broken"], leave: (stream, { dice }) => stream.reset(1 + dice.below(13)) },
  { what: "a cut of the line", ends: [OK, "broken"], leave: (_, { wire }) => wire.cut() },
  {
    what: "a reset within a message",
    ends: [OK, "broken"],
    leave: (stream, { dice }) => {
      stream.write(framed(dice.bytes(dice.below(50)), { length: 100 }));
      stream.reset(constants.NGHTTP2_CANCEL);
    },
  },
  {
    what: "its client's end within a message",
    ends: [OK, INVALID_ARGUMENT],
    leave: (stream, { dice }) => {
      const bytes = framed(dice.bytes(dice.below(50)), { length: 100 });
      stream.write(bytes.subarray(0, 1 + dice.below(bytes.length)));
      stream.finish();
    },
  },
  {
    what: "a message that is announced as too large",
    ends: [OK, RESOURCE_EXHAUSTED],
    leave: (stream, { dice }) => stream.write(framed(dice.bytes(20), { length: dice.pick([REQUEST_BYTES_MAX + 1, 2 ** 31, 2 ** 32 - 1]) })),
  },
  {
    what: "a message that is too large",
    ends: [OK, RESOURCE_EXHAUSTED],
    leave: (stream) => stream.write(framed(Buffer.alloc(REQUEST_BYTES_MAX + 1))),
  },
  {
    what: "a flag that says nothing",
    ends: [OK, INVALID_ARGUMENT],
    leave: (stream, { dice, isCompressed }) =>
      stream.write(framed(requestBytes(undefined), { flag: dice.pick([isCompressed ? 2 : 1, 2, 128, 255]) })),
  },
  {
    what: "a message that only looks compressed",
    ends: [OK, INTERNAL, INVALID_ARGUMENT],
    leave: (stream, { dice }) =>
      stream.write(framed(dice.pick([dice.bytes(40), deflateRawSync(dice.bytes(40)), gzipSync("x").subarray(0, 12)]), { flag: 1 })),
  },
  {
    what: "a message that becomes too large",
    ends: [OK, RESOURCE_EXHAUSTED, INVALID_ARGUMENT],
    leave: (stream) => stream.write(framed(gzipSync(Buffer.alloc(2 * REQUEST_BYTES_MAX)), { flag: 1 })),
  },
  {
    what: "bytes that are no HTTP/2",
    ends: [OK, "broken"],
    leave: (_, { dice, wire }) => wire.garble(Buffer.concat([Buffer.alloc(9, 0xff), dice.bytes(40)])),
  },
];

/** Whether a stream ended as one may that ended so. */
export function isExpected(end: WireEnd, ends: Leaving["ends"]): boolean {
  return ends.includes(end.kind === "broken" ? "broken" : end.code);
}
