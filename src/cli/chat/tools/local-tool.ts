/** What the chat's own tools have in common. */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Clock } from "../../../base/index.ts";
import type { Workspace } from "./workspace.ts";

/** What became of a call. */
export interface ToolOutcome {
  readonly success: boolean;
  /** What the model is told. */
  readonly result: string;
  readonly exitCode?: number | undefined;
  /** Whether the result is a part of what there was. */
  readonly truncated?: boolean | undefined;
}

/**
 * Whether a person is asked before a call: `none` for what only looks, `ask` unless they allowed the tool for the session, `ask-always` for
 * what touches secrets or the history of a repository.
 */
export type Consent = "none" | "ask" | "ask-always";

/** What a change does to a file, by the hashes of what is in it before and after; undefined before: there is no file. */
export interface ChangeMark {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string;
}

/** A call that was looked at and can be run. */
export interface PreparedCall {
  /** What it does, in a few words: for the line that asks. */
  readonly summary: string;
  /** All of it, for a person who wants to see it before they answer. */
  readonly details: string;
  /** Whether the details are a diff, of which the person sees the first lines when they are asked. */
  readonly hasDiff?: boolean | undefined;
  readonly consent: Consent;
  /** With what a later run can see whether this one took effect. */
  readonly mark?: ChangeMark | undefined;
  run(options: { readonly signal: AbortSignal }): Promise<ToolOutcome>;
}

/** A call that is not run, and why. */
export interface RefusedCall {
  readonly refused: string;
}

/** Where tools act. */
export interface ToolWorld {
  readonly workspace: Workspace;
  readonly clock: Clock;
  /** The environment of commands. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** A tool that the chat offers. */
export interface LocalTool {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of its arguments. */
  readonly parameters: JsonObject;
  /** How long the server waits for a result, the time in which a person decides included. */
  readonly timeoutMs: number;
  /** Whether calls only look. They may be run again after a crash. */
  readonly onlyLooks: boolean;
  /** Looks at a call's arguments; changes nothing. */
  prepare(args: JsonObject, world: ToolWorld): Promise<PreparedCall | RefusedCall>;
}

/** A call of the chat's own tools that was refused before it began. */
export class Refusal extends Error {
  override readonly name = "Refusal";
}

/** The outcome of what a tool refuses or the system does: the model is told, in words without a path of the machine. */
export function failure(error: unknown): ToolOutcome {
  return { success: false, result: reasonOf(error) };
}

/** Why something failed, for the model. */
export function reasonOf(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return REASONS[code] ?? "it failed on this machine";
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  ENOTDIR: "a part of the path is a file, not a folder",
  EISDIR: "it is a folder, not a file",
  EACCES: "the system does not permit it",
  EPERM: "the system does not permit it",
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
  ELOOP: "the path leads in a circle",
  ENAMETOOLONG: "the name is too long",
  ABORT_ERR: "it was cancelled",
};

/** A text among the arguments. */
export function textArg(args: JsonObject, name: string, byDefault?: string): string {
  const value: JsonValue | undefined = args[name];
  if (typeof value === "string") return value;
  if (value === undefined && byDefault !== undefined) return byDefault;
  throw new Refusal(`${name}: must be a text`);
}

/** A whole number among the arguments, within bounds. */
export function countArg(args: JsonObject, name: string, byDefault: number, max: number): number {
  const value: JsonValue | undefined = args[name];
  if (value === undefined) return byDefault;
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw new Refusal(`${name}: must be a whole number from 1 to ${max}`);
}
