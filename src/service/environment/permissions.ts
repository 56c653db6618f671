/**
 * What happens when a tool is called in an environment: its own rules, and then what holds everywhere. Pure.
 *
 * Invariant: every tool has a rule. What a client is shown (`permissionRules`) is what decides (`permissionFor`), in the same order.
 */

import { create } from "@bufbuild/protobuf";
import { isGlobOf } from "../../controller/index.ts";
import { PermissionRuleSchema, type PermissionRule as WireRule } from "../../gen/roz/v1/agent_pb.ts";
import type { Environment, PermissionPolicy, PermissionRule, ToolCategory } from "../../spi/index.ts";

/** A tool as a rule sees it. */
export interface CategorisedTool {
  readonly name: string;
  readonly category: ToolCategory;
}

/** What a rule says of a tool. */
export interface Permission {
  readonly policy: PermissionPolicy;
  /** "" where nobody said why. */
  readonly reason: string;
}

/** What holds where no rule of the environment fits. */
const DEFAULT_RULES: readonly PermissionRule[] = [
  { tool: "*", policy: "allow", category: "pure", reason: "it only reads or computes" },
  { tool: "*", policy: "require_confirmation", category: "physical", reason: "it acts on the world" },
];

/** What happens when `tool` is called. */
export function permissionFor(tool: CategorisedTool, environment: Pick<Environment, "permissions">): Permission {
  const rule = rulesOf(environment).find((candidate) => speaksOf(candidate, tool));
  // The rules that hold everywhere have one for each category; without a word for a tool it would not run.
  return { policy: rule?.policy ?? "block", reason: rule?.reason ?? "" };
}

/** The rules as a client is shown them, those that hold everywhere included. */
export function permissionRules(environment: Pick<Environment, "permissions">): WireRule[] {
  return rulesOf(environment).map(({ tool, policy, category, reason }) =>
    create(PermissionRuleSchema, {
      toolPattern: tool,
      policy,
      ...(category === undefined ? {} : { category }),
      ...(reason === undefined ? {} : { reason }),
    }),
  );
}

function rulesOf({ permissions }: Pick<Environment, "permissions">): readonly PermissionRule[] {
  return [...permissions, ...DEFAULT_RULES];
}

function speaksOf(rule: PermissionRule, { name, category }: CategorisedTool): boolean {
  return (rule.category === undefined || rule.category === category) && isGlobOf(rule.tool, name);
}
