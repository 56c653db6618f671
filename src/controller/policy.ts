/**
 * Policies: the host's own word on the tool calls of its harnesses, by tool and by argument. Pure.
 *
 * Invariants:
 * - The first rule that matches a call decides it. Where none matches, it is as the harness asked.
 * - What an argument is compared with is compared in full. A rule that allows needs every element of a list to match, one that denies or
 *   asks needs one: a list cannot smuggle past either.
 */

import { create } from "@bufbuild/protobuf";
import { IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { IdentityRef, ToolCall } from "../spi/index.ts";

/** One rule. */
export interface PolicyRule {
  /** How records name it. */
  readonly name: string;
  /** The tools that it speaks of; `*` stands for any characters. */
  readonly tool: string;
  /** What arguments must be, all of them; by a name, or by a path that begins with `/` and has one `/` before each key. */
  readonly args: Readonly<Record<string, ArgumentTest>>;
  /**
   * `allow`: a call that asks for a decision is approved. `deny`: the call is not run. `ask`: a person decides; a call that does not
   * ask for a decision is not run.
   */
  readonly do: "allow" | "deny" | "ask";
  /** Why, for whoever reads the record; "" for no more than the rule's name. */
  readonly reason: string;
  /** What becomes of a request that the rule speaks of and nobody answers. Default: what the host has for all. */
  readonly expiry?: ApprovalExpiry | undefined;
}

/** What becomes of a request that nobody answers. */
export interface ApprovalExpiry {
  /** From the request on, in milliseconds; undefined for never. */
  readonly afterMs: number | undefined;
  readonly answer: "allow" | "deny";
}

/** What one argument must be; everything that is given must hold. An argument that is not there matches nothing. */
export interface ArgumentTest {
  readonly equals?: string | number | boolean | null | undefined;
  /** Text that begins so. It is text: `/a` begins `/a/../b` and `/ab` as well. */
  readonly prefix?: string | undefined;
  /** Text of this form; `*` stands for any characters, `/` among them. */
  readonly glob?: string | undefined;
  /**
   * A path at or under this folder, once `.`, `..` and double slashes are worked out. A relative path is under a relative folder only.
   * Where links lead, and what a tool's working folder is, nobody knows here. A path that cannot be told (with a backslash, or leading
   * above its start) is under no folder that is allowed, and under every one that is denied or asked about.
   */
  readonly under?: string | undefined;
}

/** By this issuer and principal the host's own decisions are known. */
const HOST_ISSUER = "holdfast";
const POLICY_PRINCIPAL = "policy";

/** The rule that decides a call; undefined where none speaks of it. */
export function ruleFor(rules: readonly PolicyRule[], call: Pick<ToolCall, "tool" | "args">): PolicyRule | undefined {
  return rules.find((rule) => matches(rule, call));
}

/** Who decided, in the record of a decision that the host made: `subject` is the rule's name, or `expiry`. */
export function policyActor(subject: string): IdentityRef {
  return create(IdentityRefSchema, { issuer: HOST_ISSUER, principal: POLICY_PRINCIPAL, subject });
}

/** Whether an identity is that of the host's own decisions, which no caller may go by. */
export function isPolicyActor(identity: IdentityRef | undefined): boolean {
  return identity?.issuer === HOST_ISSUER && identity.principal === POLICY_PRINCIPAL;
}

/** Why a rule decided, in words. */
export function ruleReason({ name, reason }: PolicyRule): string {
  return reason === "" ? `policy ${name}` : `policy ${name}: ${reason}`;
}

function matches(rule: PolicyRule, { tool, args }: Pick<ToolCall, "tool" | "args">): boolean {
  if (!isGlobOf(rule.tool, tool)) return false;
  return Object.entries(rule.args).every(([path, test]) => {
    const value = argumentAt(args ?? {}, path);
    const isAllow = rule.do === "allow";
    if (!Array.isArray(value)) return holds(test, value, isAllow);
    const each: readonly unknown[] = value;
    if (isAllow) return each.length > 0 && each.every((element) => holds(test, element, isAllow));
    return each.some((element) => holds(test, element, isAllow));
  });
}

/** The argument of a name or at a path; undefined where there is none. */
function argumentAt(args: unknown, path: string): unknown {
  const keys = path.startsWith("/") ? path.slice(1).split("/") : [path];
  let value = args;
  for (const key of keys) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value;
}

function holds(test: ArgumentTest, value: unknown, isAllow: boolean): boolean {
  if (test.equals !== undefined && value !== test.equals) return false;
  if (test.prefix === undefined && test.glob === undefined && test.under === undefined) return test.equals !== undefined;
  if (typeof value !== "string") return false;
  if (test.prefix !== undefined && !value.startsWith(test.prefix)) return false;
  if (test.glob !== undefined && !isGlobOf(test.glob, value)) return false;
  return test.under === undefined || isUnder(test.under, value, isAllow);
}

/** Whether `text` has the form of `glob`. Takes no longer than its length asks for, whatever the glob. */
export function isGlobOf(glob: string, text: string): boolean {
  const [first = "", ...rest] = glob.split("*");
  const last = rest.pop();
  if (last === undefined) return glob === text;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

/** Where a path leads that systems read differently, or that leads out of a folder nobody knows, cannot be told: it is never allowed. */
function isUnder(folder: string, path: string, isAllow: boolean): boolean {
  const inner = pathKeys(path);
  if (/[\0\\]/.test(path) || inner[0] === "..") return !isAllow;
  const outer = pathKeys(folder);
  if (folder.startsWith("/") !== path.startsWith("/")) return false;
  return outer.every((key, index) => inner[index] === key);
}

/** The parts of a path once `.` and `..` are worked out; what leads above a relative path's start stays. */
function pathKeys(path: string): readonly string[] {
  const keys: string[] = [];
  for (const key of path.split("/")) {
    if (key === "" || key === ".") continue;
    const canGoUp = keys.length > 0 && keys.at(-1) !== "..";
    if (key !== "..") keys.push(key);
    else if (canGoUp) keys.pop();
    else if (!path.startsWith("/")) keys.push(key);
  }
  return keys;
}
