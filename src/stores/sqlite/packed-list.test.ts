import { describe, expect, it } from "vitest";
import { packList, unpackList } from "./packed-list.ts";
import { STATEMENT_NAMES, VALUE_COUNTS } from "./statements.ts";

describe("a packed list", () => {
  it("comes out as it went in, bytes of any length and part of other memory included", () => {
    const memory = Uint8Array.from({ length: 100 }, (_, index) => index);
    const list = { statements: [0, 4, 1], values: [1, "hash", memory.subarray(7, 9), null, new Uint8Array(0), -1.5, "", memory] };
    const packed = packList(list);
    expect(packed.bytes.byteLength).toBe(102);
    expect(unpackList(structuredClone(packed, { transfer: [packed.bytes] }))).toEqual(list);
  });

  it("needs to know how many values each statement takes", () => {
    expect(Object.fromEntries(STATEMENT_NAMES.map((name, index) => [name, VALUE_COUNTS[index]]))).toMatchObject({
      insertRecord: 8,
      insertAside: 3,
      insertSession: 17,
      clearProbe: 0,
    });
  });
});
