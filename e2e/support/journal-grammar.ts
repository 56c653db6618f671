/** The order that every journal has, whoever raced for it: a checker for tests, apart from the code that it checks. */

import { Lifecycle_Kind, type LogRecord } from "../../src/gen/agentsessions/v1/common_pb.ts";

/** What is wrong with the order of a journal; undefined when nothing is. */
export function grammarFault(records: readonly LogRecord[]): string | undefined {
  const ended = new Set<string>();
  const started = new Set<string>();
  let open: { readonly executionId: string; stopped: boolean } | undefined;
  for (const [index, { seq, event }] of records.entries()) {
    const at = `at seq ${seq}`;
    if (event === undefined) return `${at}: there is no event`;
    const { executionId, body } = event;
    const before = records[index - 1]?.event?.body;
    if (before?.case === "lifecycle" && before.value.kind === Lifecycle_Kind.LIFECYCLE_DELETE)
      return `${at}: a record follows the deletion`;
    switch (body.case) {
      case "executionStart":
        if (open !== undefined && !open.stopped) return `${at}: a turn begins before the one before it stopped`;
        if (started.has(executionId)) return `${at}: an execution begins a second time`;
        started.add(executionId);
        open = { executionId, stopped: false };
        break;
      case "lifecycle":
        if (body.value.kind === Lifecycle_Kind.LIFECYCLE_SUSPEND && open !== undefined && !open.stopped)
          return `${at}: a session is suspended inside a turn`;
        // What a fork cut off in the middle of a turn is not running in the child.
        if (body.value.kind === Lifecycle_Kind.LIFECYCLE_FORK && open !== undefined) open.stopped = true;
        break;
      case "end":
        if (open?.executionId !== executionId) return `${at}: an END of a turn that is not open`;
        if (ended.has(executionId)) return `${at}: a turn ends a second time`;
        ended.add(executionId);
        open = undefined;
        break;
      case "error":
        if (open !== undefined) open.stopped = true;
        break;
      default:
        if (open?.executionId !== executionId) return `${at}: a record of a turn that is not open`;
        open.stopped = false;
    }
  }
  return undefined;
}
