/** What the chat says, before a screen is known; and what it wants done. Pure types. */

import type { JsonObject } from "@bufbuild/protobuf";
import type { MarkdownBlock } from "./markdown/stream.ts";
import type { ToolOutcome } from "./tools/index.ts";

/** Something that is printed once, above the prompt. */
export type Printed =
  /** What the person said. */
  | { readonly kind: "said"; readonly text: string }
  /** A command that the person typed. */
  | { readonly kind: "typed"; readonly text: string }
  /** A block of the answer. */
  | { readonly kind: "answer"; readonly block: MarkdownBlock }
  /** A line of the model's reasoning. */
  | { readonly kind: "thought"; readonly text: string; readonly isJoined: boolean }
  /** A piece of the answer as it came, where nobody formats it. */
  | { readonly kind: "raw"; readonly text: string }
  /** A tool call. */
  | { readonly kind: "call"; readonly summary: string }
  /** What a call would do; `isWhole` shows all of it. */
  | { readonly kind: "details"; readonly text: string; readonly isWhole: boolean }
  /** What became of a call; `isWhole` shows all of it. */
  | { readonly kind: "outcome"; readonly outcome: ToolOutcome; readonly isWhole: boolean }
  /** A remark of the chat's. */
  | { readonly kind: "note"; readonly text: string }
  /** Something that went wrong. */
  | { readonly kind: "problem"; readonly text: string }
  /** What a command of the person's answers. */
  | { readonly kind: "lines"; readonly lines: readonly string[] };

/** A command that needs the server. */
export type ServerCommand =
  | { readonly name: "fork"; readonly count: number }
  | { readonly name: "tree" }
  /** Goes back over so many turns. */
  | { readonly name: "rewind"; readonly turns: number };

/** Something that the chat wants done. */
export type Effect =
  | { readonly kind: "print"; readonly printed: Printed }
  | { readonly kind: "say"; readonly text: string }
  | { readonly kind: "cancel-turn" }
  | { readonly kind: "decide"; readonly callId: string; readonly approved: boolean }
  /** Which tool a question is about. */
  | { readonly kind: "look-up"; readonly callId: string }
  /** Looks at a call of the server's. */
  | { readonly kind: "prepare"; readonly callId: string; readonly tool: string; readonly args: JsonObject; readonly timeoutMs: number }
  /** Runs a call that was prepared, and answers it. */
  | { readonly kind: "run"; readonly callId: string }
  /** Answers a call that is not run. */
  | { readonly kind: "refuse"; readonly callId: string; readonly result: string }
  /** Keeps that a person allowed this call, or this tool for the session. */
  | { readonly kind: "keep-allowed"; readonly callId: string }
  | { readonly kind: "keep-always"; readonly tool: string }
  /** Ends what runs here. */
  | { readonly kind: "stop-tools" }
  /** The turn is over: what was kept for it is forgotten. */
  | { readonly kind: "end-turn" }
  /** Asks to be told when no key came at the question for so long; it takes the place of what was asked before. */
  | { readonly kind: "await-quiet"; readonly callId: string; readonly forMs: number }
  | { readonly kind: "command"; readonly command: ServerCommand }
  | { readonly kind: "redraw" }
  | { readonly kind: "suspend" }
  | { readonly kind: "leave" };
