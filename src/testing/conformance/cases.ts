/** Every case of the suite, by group. */

import { CANCEL_CASES, DELETE_CASES } from "./cancel-cases.ts";
import type { CaseTable, ContractCase } from "./contract.ts";
import { EXEC_CASES } from "./exec-cases.ts";
import { FORK_CASES } from "./fork-cases.ts";
import { CHECK_CASES, LINEAGE_CASES, TAIL_CASES, VERIFY_CASES } from "./journal-cases.ts";
import { LIFECYCLE_CASES } from "./lifecycle-cases.ts";
import { LIST_CASES } from "./list-cases.ts";
import { CHAIN_CASES, REPLAY_CASES } from "./replay-cases.ts";
import { APPROVE_CASES, TOOL_CASES } from "./tool-cases.ts";
import { SESSION_CASES } from "./session-cases.ts";

/** The groups, in the order in which they run. The last four are of `holdfast.v1`. */
const GROUPS: Readonly<Record<string, CaseTable>> = {
  session: SESSION_CASES,
  list: LIST_CASES,
  exec: EXEC_CASES,
  cancel: CANCEL_CASES,
  delete: DELETE_CASES,
  replay: REPLAY_CASES,
  chain: CHAIN_CASES,
  fork: FORK_CASES,
  lifecycle: LIFECYCLE_CASES,
  tools: TOOL_CASES,
  approve: APPROVE_CASES,
  tail: TAIL_CASES,
  verify: VERIFY_CASES,
  check: CHECK_CASES,
  lineage: LINEAGE_CASES,
};

/** The names of the groups. */
export const CONFORMANCE_GROUPS: readonly string[] = Object.keys(GROUPS);

export const CONTRACT_CASES: readonly ContractCase[] = Object.entries(GROUPS).flatMap(([group, table]) =>
  Object.entries(table).map(([name, { promise, needs = [], run }]) => ({ id: `${group}/${name}`, promise, needs, run })),
);
