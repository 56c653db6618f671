import { describe, expect, it } from "vitest";
import { HoldfastError, type Log } from "../../base/index.ts";
import type { WriteList } from "./statements.ts";
import { WriteGate } from "./write-gate.ts";

const LIST: WriteList = { statements: [0], values: [] };
const passing = new HoldfastError("resource_exhausted", "full", { details: { lasts: false } });
const lasting = new HoldfastError("unavailable", "disk", { details: { lasts: true } });

function gateOf(...answers: (HoldfastError | undefined)[]) {
  const lines: string[] = [];
  const written: WriteList[] = [];
  const log: Log = { log: (level, message) => void lines.push(`${level} ${message}`) };
  const link = {
    write: async (list: WriteList) => {
      written.push(list);
      const answer = answers.shift();
      if (answer !== undefined) throw answer;
    },
    close: async () => undefined,
  };
  const file = {
    gone: false,
    requireThere: () => {
      if (file.gone) throw lasting;
    },
  };
  return { gate: new WriteGate(link, file, log), lines, written, file };
}

describe("WriteGate", () => {
  it("goes on after a fault that passes, and logs its beginning and its end once", async () => {
    const { gate, lines } = gateOf(passing, passing, undefined, undefined);
    await expect(gate.write(LIST)).rejects.toBe(passing);
    await expect(gate.write(LIST)).rejects.toBe(passing);
    await gate.write(LIST);
    await gate.write(LIST);
    expect(lines).toEqual(["error journal: changes cannot be written", "info journal: changes are written again"]);
  });

  it("is not ready after such a fault until a probe of its own succeeds", async () => {
    const { gate, written } = gateOf(passing, passing, undefined);
    await gate.ready();
    expect(written.length).toBe(0);
    await expect(gate.write(LIST)).rejects.toBe(passing);
    await expect(gate.ready()).rejects.toBe(passing);
    await gate.ready();
    await gate.ready();
    expect(written.length).toBe(3);
  });

  it("is not ready, and writes nothing any more, once the file is found to be gone", async () => {
    const { gate, written, file, lines } = gateOf();
    file.gone = true;
    await expect(gate.ready()).rejects.toBe(lasting);
    file.gone = false;
    expect(() => gate.write(LIST)).toThrow(lasting);
    await expect(gate.ready()).rejects.toBe(lasting);
    expect([written.length, lines]).toEqual([0, ["error journal: changes cannot be written"]]);
  });

  it("writes nothing any more after a fault that lasts", async () => {
    const { gate, written } = gateOf(lasting);
    await expect(gate.write(LIST)).rejects.toBe(lasting);
    expect(() => gate.write(LIST)).toThrow(lasting);
    await expect(gate.ready()).rejects.toBe(lasting);
    expect([written.length, gate.stages]).toEqual([1, false]);
  });
});
