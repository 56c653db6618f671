/** `holdfast conformance` */

import { Option, type Command } from "commander";
import { collected } from "../arguments.ts";
import { withServer } from "../connect.ts";
import { clientOptions, define, optionOr, run, type ClientFlags } from "../define.ts";
import { checkConformance } from "../conformance-report.ts";

interface ConformanceFlags extends ClientFlags {
  readonly only?: readonly string[];
  readonly harness?: string;
  readonly waitingHarness?: string;
  readonly failingHarness?: string;
  readonly flakyHarness?: string;
  readonly toolHarness?: string;
  readonly approvalHarness?: string;
  readonly parallelApprovalHarness?: string;
}

const DESCRIPTION =
  "Asks a server for the promises of the Sessions contract, one case after the other, through its public API alone, and says which were " +
  "kept. It runs some hundred short turns on the server's default harness (--harness names another one, such as echo), in projects of its " +
  "own, and deletes its sessions afterwards. A case is skipped, with the reason, where the server lacks something that it may lack: the " +
  "calls of holdfast.v1, or a harness that the case needs and no flag names.";

export function conformanceCommand(): Command {
  const command = define("conformance", "check a server against the contract", DESCRIPTION, [
    ["a server of whatever make", "holdfast conformance --server sessions.example:443 --harness echo"],
    ["the forks alone, and one case of another group", "holdfast conformance --only fork --only exec/order"],
    ["in CI", "holdfast conformance --json > conformance.jsonl"],
  ])
    .addOption(new Option("--only <group>", "only this group (fork) or case (fork/prefix); may be given again").argParser(collected))
    .addOption(optionOr("--harness <name>", "a harness whose turns complete", "the server's"))
    .addOption(new Option("--waiting-harness <name>", "a harness whose turns go on until they are cancelled"))
    .addOption(new Option("--failing-harness <name>", "a harness whose turns end FAILED"))
    .addOption(new Option("--flaky-harness <name>", "a harness that throws in a turn's first run and completes when it is resumed"))
    .addOption(new Option("--tool-harness <name>", "a harness that calls a tool that succeeds, then one whose executor fails"))
    .addOption(new Option("--approval-harness <name>", "a harness whose turn makes one call that needs approval"))
    .addOption(new Option("--parallel-approval-harness <name>", "a harness whose turn makes three such calls at once"));
  return clientOptions(command, "one result on each line, then a summary").action((flags: ConformanceFlags) =>
    run(flags, (context) =>
      withServer(context, flags, ({ connect }) => {
        const { only, ...abilities } = flags;
        return checkConformance(context, { connect, only, abilities });
      }),
    ),
  );
}
