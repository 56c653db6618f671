/** What the documents say of a request's answer: the table of errors of `docs/agent-service.md`. */

import type { SessionResponse } from "../../../src/gen/roz/v1/agent_pb.ts";
import type { Saying } from "../../../src/testing/door-client.ts";

type Said = SessionResponse["response"];

/** What was asked, and what may be wrong with it. */
export interface Asked {
  readonly what: string;
  /** Codes of the error that it may get. */
  readonly codes: readonly string[];
  /** Whether it gets one in any case. */
  readonly isWrong: boolean;
}

/** Of a turn, or of what became of the stream: they belong to no request. */
const OF_NO_REQUEST: ReadonlySet<string> = new Set(["model_error", "agent_error", "taken_over"]);

/** What a request may be told, over a stream whose session was started or not. */
export function askedOf(request: Saying | undefined, isStarted: boolean): Asked {
  if (request === undefined) return { what: "an empty request", codes: ["invalid_argument"], isWrong: true };
  const what = request.case;
  if (what === "ping") return { what, codes: [], isWrong: false };
  if (what === "start") {
    return isStarted ? { what, codes: ["already_started"], isWrong: true } : { what, codes: ["invalid_argument"], isWrong: false };
  }
  if (!isStarted) return { what, codes: ["no_session"], isWrong: true };
  return { what, codes: ["invalid_argument", ...STATE_CODES[what]], isWrong: false };
}

export const NO_PROTOBUF: Asked = { what: "bytes that are no request", codes: ["invalid_argument"], isWrong: true };

/** Errors that depend on what the session does. */
const STATE_CODES: Readonly<Record<Exclude<Saying["case"], "ping" | "start">, readonly string[]>> = {
  userMessage: ["turn_in_progress"],
  toolResult: ["no_active_turn", "unknown_tool_call"],
  permissionDecision: ["unknown_tool_call"],
  cancelTurn: ["no_active_turn"],
  cancelSession: [],
  registerTools: [],
  feedback: [],
};

/** Complaints about the errors that came while these requests were answered, in their order. */
export function complaintsAbout(asked: readonly Asked[], said: readonly Said[]): string[] {
  const errors = said.flatMap((each) => (each.case === "error" ? [each.value] : []));
  const wrong = errors.filter(({ message }) => !/^[a-z_.[\]0-9-]+: \S/.test(message) || message.includes("secret"));
  const complaints = wrong.map(({ code, message }) => `${code} in words that it may not have: ${message.slice(0, 100)}`);
  const codes = errors.map(({ code }) => code);
  if (isExplained(asked, codes)) return complaints;
  return [...complaints, `${asked.map(wordsOf).join(", ") || "nothing"} was answered with ${codes.join(", ") || "no error"}`];
}

/** Whether each error belongs to a request that may get it, and each request that is wrong has got one: in the order of both. */
function isExplained(asked: readonly Asked[], codes: readonly string[]): boolean {
  // For each request, from the last one on: from which error on the rest is explained.
  let rest = codes.map((_, at) => codes.slice(at).every((code) => OF_NO_REQUEST.has(code)));
  rest.push(true);
  for (const { codes: own, isWrong } of asked.toReversed()) {
    const here: boolean[] = [];
    for (let at = codes.length; at >= 0; at--) {
      const code = codes[at] ?? "";
      here[at] =
        (!isWrong && rest[at] === true) ||
        (own.includes(code) && rest[at + 1] === true) ||
        (OF_NO_REQUEST.has(code) && here[at + 1] === true);
    }
    rest = here;
  }
  return rest[0] === true;
}

function wordsOf({ what, isWrong }: Asked): string {
  return isWrong ? `${what} (wrong)` : what;
}
