/**
 * Values that are awkward for text (control characters, astral characters, keys that sort differently in UTF-8 and UTF-16)
 * and for numbers (−0, 1e21, the edges of 2^53, int32 and int64), for property tests. All of them are legal.
 */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";

const AWKWARD_TEXTS = [
  "",
  " ",
  '"',
  "\\",
  "/",
  "\b\f\n\r\t",
  "\u0000\u0001\u001f",
  "\u007f",
  "<script>&amp;</script>",
  "\u2028\u2029",
  "\u00e9",
  "e\u0301",
  "\ufffd",
  "\ufeffbom",
  "\uffff",
  "\ue000",
  "\u{1f600}",
  "a\u{10ffff}z",
  "漢字",
  "null",
  "0",
  "-1",
  "__proto__",
  "constructor",
  "toJSON",
  "x".repeat(31),
  "x".repeat(32),
  "x".repeat(33),
  "x".repeat(72),
  "y".repeat(73),
  "z".repeat(128),
  "é".repeat(60),
  `${"w".repeat(200)}\u{1f680}`,
];
const AWKWARD_NUMBERS = [
  0,
  -0,
  1,
  -1,
  0.1,
  1.5,
  -2.5,
  1 / 3,
  1e20,
  1e21,
  -1e21,
  1.2e21,
  123456789012345680000,
  1e-6,
  1e-7,
  1.5e-7,
  9.5e-7,
  2 ** 53 - 1,
  2 ** 53,
  2 ** 53 + 2,
  -(2 ** 53),
  2 ** 63,
  1e300,
  Number.MAX_VALUE,
  Number.MIN_VALUE,
  Number.EPSILON,
  333333333.3333333,
];
const AWKWARD_INT64 = [
  0n,
  1n,
  -1n,
  127n,
  128n,
  16383n,
  16384n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  -(2n ** 63n),
  -(2n ** 31n),
  -(2n ** 53n) - 1n,
];
const AWKWARD_INT32 = [0, 1, -1, 127, 128, 16383, 16384, 2 ** 31 - 1, -(2 ** 31)];

/** Well-formed text, often awkward. */
export function awkwardText(): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...AWKWARD_TEXTS) },
    { weight: 1, arbitrary: fc.string({ maxLength: 12 }) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
    { weight: 1, arbitrary: fc.array(fc.constantFrom(...AWKWARD_TEXTS.slice(1, 20)), { maxLength: 4 }).map((texts) => texts.join("")) },
  );
}

/** A finite number, often awkward. `safe` keeps integers within ±(2^53−1). */
export function awkwardNumber(safe = false): fc.Arbitrary<number> {
  const any = fc.oneof(fc.constantFrom(...AWKWARD_NUMBERS), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer());
  return safe ? any.map((value) => (Number.isInteger(value) && !Number.isSafeInteger(value) ? value % 1e6 : value)) : any;
}

/** Any int64, often at an edge. */
export const int64 = (): fc.Arbitrary<bigint> =>
  fc.oneof(fc.constantFrom(...AWKWARD_INT64), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
/** Any int32, often at an edge. */
export const int32 = (): fc.Arbitrary<number> => fc.oneof(fc.constantFrom(...AWKWARD_INT32), fc.integer());

/** A few bytes, or none. */
export const bytes = (): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength: 9 });

/** A JSON object as a Struct holds it. `safe` keeps integers within ±(2^53−1). */
export function jsonObject(safe = false): fc.Arbitrary<JsonObject> {
  const { object } = fc.letrec<{ object: JsonObject; value: JsonValue }>((tie) => ({
    object: fc.dictionary(awkwardText(), tie("value"), { maxKeys: 4, depthIdentifier: "json" }),
    value: fc.oneof(
      { maxDepth: 3, depthIdentifier: "json", withCrossShrink: true },
      fc.constant(null),
      awkwardText(),
      awkwardNumber(safe),
      fc.boolean(),
      fc.array(tie("value"), { maxLength: 3, depthIdentifier: "json" }),
      tie("object"),
    ),
  }));
  return object;
}

/** A Timestamp with 0, 3, 6 or 9 fraction digits, from year 1 to year 9999. */
export function timestamp(): fc.Arbitrary<Timestamp> {
  const seconds = fc.oneof(
    fc.constantFrom(-62_135_596_800n, 253_402_300_799n, 0n, -1n, 951_782_399n, 951_782_400n, 1_764_500_000n),
    fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
  );
  const nanos = fc.oneof(fc.constantFrom(0, 1, 1_000, 1_000_000, 10_000_000, 123_000_000, 123_456_000, 999_999_999), fc.nat(999_999_999));
  return fc.record({ seconds, nanos }).map((ts) => ({ $typeName: "google.protobuf.Timestamp", ...ts }));
}
