import { describe, expect, it } from "vitest";
import { VirtualScreen } from "../../../../e2e/support/virtual-screen.ts";
import { LiveScreen } from "./live-screen.ts";

function bench(columns = 20, rows = 6) {
  const seen = new VirtualScreen(columns, rows);
  const size = { columns, rows };
  return {
    seen,
    size,
    screen: new LiveScreen(
      (text) => seen.write(text),
      () => size,
    ),
  };
}

const at = (row: number, column: number) => ({ row, column });

describe("the live end of a screen", () => {
  it("is drawn anew below what was printed", () => {
    const { seen, screen } = bench();
    screen.update([], { rows: ["draft"], cursor: at(0, 5) });
    screen.update(["one"], { rows: ["status", "draft!"], cursor: at(1, 6) });
    screen.update(["two"], { rows: ["draft!"], cursor: at(0, 0) });
    expect(seen.text).toBe("one\ntwo\ndraft!");
    expect(seen.unknown).toEqual([]);
  });

  it("goes away and leaves what was printed", () => {
    const { seen, screen } = bench();
    screen.update(["one"], { rows: ["a", "b", "c"], cursor: at(0, 0) });
    screen.close(["two"]);
    expect(seen.text).toBe("one\ntwo");
  });

  it("shows the end of an area that is higher than the screen, and scrolls nothing of it away", () => {
    const { seen, screen } = bench(20, 4);
    const rows = ["1", "2", "3", "4", "5", "6"];
    screen.update(["printed"], { rows, cursor: at(5, 1) });
    screen.update([], { rows, cursor: at(5, 1) });
    screen.update([], { rows: ["done"], cursor: at(0, 0) });
    expect(seen.text).toBe("printed\ndone");
  });

  it("prints lines that are longer than the screen is wide", () => {
    const { seen, screen } = bench(10, 5);
    screen.update(["0123456789abc"], { rows: ["x"], cursor: at(0, 1) });
    screen.update(["next"], { rows: ["y"], cursor: at(0, 1) });
    expect(seen.text).toBe("0123456789\nabc\nnext\ny");
  });
});
