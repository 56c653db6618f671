import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { budgetsConfig } from "./budget-config.ts";

const read = (value: unknown, hasPrices = true) => budgetsConfig({ at: "budgets", value }, { hasPrices });

describe("the budgets of a config file", () => {
  it("are limits of turns, sessions, families and projects, in the units that are counted", () => {
    const value = {
      turn: { tokens: 1_000, cost: 0.25, toolCalls: 5, wallTime: "10m" },
      session: { turns: 100 },
      tree: {},
      project: { cost: 20 },
    };
    expect(read(value)).toEqual({
      turn: { tokens: 1_000, costNanoDollars: 250_000_000, turns: undefined, toolCalls: 5, wallMs: 600_000 },
      session: { tokens: undefined, costNanoDollars: undefined, turns: 100, toolCalls: undefined, wallMs: undefined },
      project: { tokens: undefined, costNanoDollars: 20_000_000_000, turns: undefined, toolCalls: undefined, wallMs: undefined },
    });
    expect(read({ tree: {} })).toBeUndefined();
    expect(budgetsConfig(undefined, { hasPrices: false })).toBeUndefined();
  });

  it.each([
    [{ day: {} }, "budgets.day: is no key here; there are: turn, session, tree, project"],
    [{ turn: { turns: 1 } }, "budgets.turn.turns: is no key here; there are: tokens, cost, toolCalls, wallTime"],
    [{ turn: { tokens: 0 } }, "budgets.turn.tokens: must be a whole number from 1"],
    [{ session: { cost: "1" } }, "budgets.session.cost: must be US dollars"],
    [{ session: { cost: 0 } }, "budgets.session.cost: must be US dollars"],
    [{ session: { wallTime: 5 } }, "budgets.session.wallTime: must be a number and a unit"],
    [{ session: 5 }, "budgets.session: must be an object"],
  ])("are refused where they are %j", (value, message) => {
    expect(() => read(value)).toThrow(HoldfastError);
    expect(() => read(value)).toThrow(message);
  });

  it("are refused where cost is limited and nothing has a price", () => {
    expect(() => read({ tree: { cost: 1 } }, false)).toThrow("budgets.tree.cost: needs models.prices");
    expect(read({ tree: { tokens: 1 } }, false)).toBeDefined();
  });
});
