import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import { errorOfFault, faultOf, toStoreError } from "./faults.ts";

function sqliteError(errcode: number): Error {
  return Object.assign(new Error("at /secret/path"), { code: "ERR_SQLITE_ERROR", errcode });
}

describe("faultOf", () => {
  it.each([
    [5, "unavailable", false],
    [6, "unavailable", false],
    [8, "failed_precondition", false],
    [8 | (1 << 8), "failed_precondition", false],
    [10, "unavailable", true],
    [10 | (4 << 8), "unavailable", true],
    [10 | (19 << 8), "resource_exhausted", false],
    [11, "data_loss", true],
    [13, "resource_exhausted", false],
    [14, "failed_precondition", true],
    [26, "data_loss", true],
    [19, "internal", false],
  ])("says what SQLite's code %i means", (errcode, code, lasts) => {
    expect(faultOf(sqliteError(errcode))).toMatchObject({ code, lasts, errcode });
  });

  it("keeps what is said already, and hides what is unknown", () => {
    const said = new HoldfastError("data_loss", "the row is damaged");
    expect(toStoreError(said)).toBe(said);
    const hidden = toStoreError(new TypeError("at /secret/path"));
    expect(hidden).toMatchObject({ code: "internal", cause: expect.any(TypeError) });
  });

  it("never tells a caller a path or SQLite's text", () => {
    for (let errcode = 1; errcode < 30; errcode++) {
      expect(errorOfFault(faultOf(sqliteError(errcode))).message).toMatch(/^journal: (?!.*secret)/);
    }
  });
});
