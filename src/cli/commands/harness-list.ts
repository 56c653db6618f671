/** `holdfast harness list` */

import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import type { Transport } from "../../client/index.ts";
import {
  HarnessRegistrationSchema,
  HarnessRegistry,
  ListHarnessesRequestSchema,
  type HarnessRegistration,
} from "../../gen/agentsessions/v1/harness_registry_pb.ts";
import { define, run } from "../define.ts";
import { messageJson } from "../json.ts";
import { operatorOptions, withOperator, type OperatorFlags } from "../operator.ts";
import { registrationTable } from "../registration-text.ts";

interface ListFlags extends OperatorFlags {
  readonly includeRetired?: boolean;
}

const PAGE_SIZE = 500;

export function harnessListCommand(): Command {
  const command = define(
    "list",
    "list harnesses by name",
    "Lists the harnesses of a server: its own, which are static, and the registered ones.",
    [
      ["those that new sessions may use", "holdfast harness list"],
      ["the addresses of all that were ever registered", "holdfast harness list --include-retired --json | jq -r .spec.remote.address"],
    ],
  ).option("--include-retired", "also those that were retired");
  return operatorOptions(command, "one HarnessRegistration on each line").action((flags: ListFlags) =>
    run(flags, ({ screen, signal }) =>
      withOperator(flags, async (transport) => {
        const harnesses = await everyHarness(transport, flags.includeRetired === true, signal);
        if (screen.json) for (const harness of harnesses) screen.value(messageJson(HarnessRegistrationSchema, harness));
        else for (const line of registrationTable(harnesses, (text) => screen.bold(text))) screen.line(line);
        return 0;
      }),
    ),
  );
}

async function everyHarness(transport: Transport, includeRetired: boolean, signal: AbortSignal): Promise<readonly HarnessRegistration[]> {
  const harnesses: HarnessRegistration[] = [];
  let pageToken = "";
  do {
    const request = create(ListHarnessesRequestSchema, { pageSize: PAGE_SIZE, pageToken, includeRetired });
    const page = await transport.unary(HarnessRegistry.method.listHarnesses, request, { signal });
    harnesses.push(...page.harnesses);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return harnesses;
}
