/** The budgets of the config file. Pure. */

import { invalidArgument } from "../base/index.ts";
import type { BudgetConfig, BudgetLimits } from "../controller/index.ts";
import { fieldsOf } from "./config-fields.ts";
import { countOf, durationMsOf, type ConfigValue } from "./config-value.ts";

const COUNT_MAX = 1e15;
const DOLLARS_MAX = 1e6;
const WALL_DAYS_MAX = 3_650;
const SCOPES = ["turn", "session", "tree", "project"] as const;

/**
 * What stands under `budgets`; undefined where nothing limits anything. Throws INVALID_ARGUMENT that names the path of the key, and for a
 * limit of cost where no model has a price: nobody could keep it.
 */
export function budgetsConfig(budgets: ConfigValue | undefined, options: { readonly hasPrices: boolean }): BudgetConfig | undefined {
  if (budgets === undefined) return undefined;
  const fields = fieldsOf(budgets, SCOPES, []);
  const config: { [Scope in (typeof SCOPES)[number]]?: BudgetLimits } = {};
  for (const scope of SCOPES) {
    const limits = fields.optional(scope, (value) => limitsOf(value, scope === "turn" ? [] : ["turns"]));
    if (limits === undefined) continue;
    if (limits.costNanoDollars !== undefined && !options.hasPrices) {
      throw invalidArgument(`${budgets.at}.${scope}.cost`, "needs models.prices, by which cost is counted");
    }
    if (Object.values(limits).some((limit) => limit !== undefined)) config[scope] = limits;
  }
  return Object.keys(config).length === 0 ? undefined : config;
}

function limitsOf(value: ConfigValue, more: readonly string[]): BudgetLimits {
  const fields = fieldsOf(value, ["tokens", "cost", "toolCalls", "wallTime", ...more], []);
  const count = (limit: ConfigValue): number => countOf(limit, COUNT_MAX);
  return {
    tokens: fields.optional("tokens", count),
    costNanoDollars: fields.optional("cost", nanoDollarsOf),
    turns: fields.optional("turns", count),
    toolCalls: fields.optional("toolCalls", count),
    wallMs: fields.optional("wallTime", (limit) => durationMsOf(limit, WALL_DAYS_MAX)),
  };
}

function nanoDollarsOf({ at, value }: ConfigValue): number {
  if (typeof value === "number" && value > 0 && value <= DOLLARS_MAX) return Math.max(1, Math.round(value * 1e9));
  throw invalidArgument(at, `must be US dollars, a number over 0 of at most ${DOLLARS_MAX}`);
}
