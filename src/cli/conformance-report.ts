/** Running the conformance suite against a server, and what it says on the screen. */

import { create } from "@bufbuild/protobuf";
import { invalidArgument } from "../base/errors.ts";
import { ListSessionsRequestSchema, Sessions } from "../gen/agentsessions/v1/session_pb.ts";
import {
  CONFORMANCE_GROUPS,
  CONTRACT_CASES,
  runConformance,
  type CaseResult,
  type ConformanceOptions,
} from "../testing/conformance/index.ts";
import type { ExitCode } from "./exit.ts";
import type { CommandContext } from "./perform.ts";
import { plain } from "./plain.ts";
import type { Style } from "./screen.ts";

/** Runs the suite. A server that does not answer, or asks for a token, is an error and no result. */
export async function checkConformance(
  { screen, signal }: CommandContext,
  options: Pick<ConformanceOptions, "abilities" | "only"> & { readonly connect: () => ReturnType<ConformanceOptions["connect"]> },
): Promise<ExitCode> {
  refuseUnknown(options.only ?? []);
  await using transport = await options.connect();
  await transport.unary(Sessions.method.listSessions, create(ListSessionsRequestSchema, { pageSize: 1 }), { signal });
  const show = (result: CaseResult): void => {
    if (screen.json) screen.value(result);
    else for (const { text, style } of resultLines(result)) screen.line(style === undefined ? text : screen.styled(style, text));
  };
  const { passed, failed, skipped } = await runConformance({ ...options, signal, onResult: show });
  if (screen.json) screen.value({ summary: { passed, failed, skipped } });
  else screen.line(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  if (failed > 0) return 1;
  return passed === 0 ? 8 : 0;
}

function refuseUnknown(only: readonly string[]): void {
  for (const name of only) {
    if (CONFORMANCE_GROUPS.includes(name) || CONTRACT_CASES.some(({ id }) => id === name)) continue;
    throw invalidArgument("--only", `must be a case (fork/prefix) or one of ${CONFORMANCE_GROUPS.join(", ")}`);
  }
}

interface ResultLine {
  readonly text: string;
  readonly style?: Style;
}

const ID_CHARS = Math.max(...CONTRACT_CASES.map(({ id }) => id.length));

/** A line for a case, and for one that failed the promise and what was found. */
export function resultLines(result: CaseResult): readonly ResultLine[] {
  const id = result.id.padEnd(ID_CHARS);
  switch (result.outcome) {
    case "passed":
      return [{ text: `${id}  ok` }];
    case "skipped":
      return [{ text: `${id}  skipped: ${plain(result.reason)}`, style: "dim" }];
    case "failed":
      return [
        { text: `${id}  FAILED`, style: "red" },
        { text: `    promised: ${result.promise}` },
        { text: `    ${plain(result.reason).replaceAll("\n", "\n    ")}` },
      ];
  }
}
