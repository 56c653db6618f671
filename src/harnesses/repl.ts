/**
 * The REPL harness: evaluates each input as JavaScript and outputs what it gives. What an input declares is there for the next ones, also
 * `let`, `const` and classes; where memory is captured it survives suspending, and a fork has its own.
 *
 * It runs whatever it is told, so it belongs into a sandbox.
 */

import type { Harness, Message } from "../spi/index.ts";
import { descriptorOf } from "./counter.ts";

/** A REPL for one session. */
export function createReplHarness(): Harness {
  const repl = new Repl();
  return {
    describe: async () => descriptorOf("repl"),
    run: async ({ inputs }, sink, { signal }) => {
      for (const input of inputs) await sink.output(await repl.evaluate(textOf(input)), { signal });
    },
  };
}

/** Evaluates code in the scope that the code before it left. */
type Evaluate = (code: string) => unknown;

/** The name under which code hands its own scope on; it is shadowed by nothing that a person writes by chance. */
const KEEP = "__keepScope";

/**
 * A scope that grows. Direct eval gives code a scope of its own for `let`, `const` and `class`; a function that is made in there evaluates
 * the next input inside of it. An input that throws declares nothing.
 */
class Repl {
  // Indirect eval is sloppy, whatever this module is: strict code would keep `var` and functions to itself.
  #evaluate = globalEval("(code) => eval(code)") as Evaluate;

  /** What an input gave, as a person reads it. A promise is waited for. */
  async evaluate(code: string): Promise<string> {
    const printed: string[] = [];
    const restoreConsole = captureConsole((line) => printed.push(line));
    try {
      printed.push(shown(await this.#run(code)));
    } catch (error) {
      printed.push(`Uncaught ${textOfError(error)}`);
    } finally {
      restoreConsole();
    }
    return printed.join("\n");
  }

  async #run(code: string): Promise<unknown> {
    let scope: Evaluate | undefined;
    const globals = globalThis as { [KEEP]?: (evaluate: Evaluate) => void };
    globals[KEEP] = (evaluate) => (scope = evaluate);
    try {
      const value = this.#evaluate(`${KEEP}((code) => eval(code)); undefined;\n${code}`);
      if (scope !== undefined) this.#evaluate = scope;
      return await value;
    } catch (error) {
      // `await` at the top is no script; as an expression it can be waited for.
      if (!(error instanceof SyntaxError) || !/\bawait\b/.test(code)) throw error;
      return await this.#evaluate(`(async () => (${code}\n))()`);
    } finally {
      delete globals[KEEP];
    }
  }
}

/** Not called `eval`, so that it evaluates in the global scope. */
// oxlint-disable-next-line no-eval -- evaluating is what this harness is for.
const globalEval: (code: string) => unknown = eval;

/** Lets `console.log` and its like print into the output; answers how to undo it. */
function captureConsole(print: (line: string) => void): () => void {
  const globals = globalThis as { console?: object };
  const before = globals.console;
  const log = (...values: unknown[]): void => print(values.map((value) => (typeof value === "string" ? value : shown(value))).join(" "));
  globals.console = { log, info: log, debug: log, warn: log, error: log };
  return () => {
    if (before === undefined) delete globals.console;
    else globals.console = before;
  };
}

function textOf({ parts }: Message): string {
  let text = "";
  for (const { part } of parts) if (part.case === "text") text += part.value.text;
  return text;
}

/** A value in one line. */
function shown(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "bigint":
      return `${value}n`;
    case "function":
      return `[function ${value.name || "anonymous"}]`;
    case "symbol":
      return value.toString();
    case "object":
      return value === null ? "null" : shownObject(value);
    default:
      return String(value);
  }
}

function shownObject(value: object): string {
  if (value instanceof Error) return `[${textOfError(value)}]`;
  if (value instanceof Map) return `Map ${shownObject([...value.entries()])}`;
  if (value instanceof Set) return `Set ${shownObject([...value.values()])}`;
  try {
    return JSON.stringify(value, (_key, item: unknown) => (typeof item === "bigint" ? `${item}n` : item)) ?? "[object]";
  } catch {
    return "[object]";
  }
}

function textOfError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : shown(error);
}
