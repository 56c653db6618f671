/** `holdfast harness retire` */

import { create } from "@bufbuild/protobuf";
import { Option, type Command } from "commander";
import { HarnessRegistrationSchema, HarnessRegistry, RetireHarnessRequestSchema } from "../../gen/agentsessions/v1/harness_registry_pb.ts";
import { define, run } from "../define.ts";
import { messageJson } from "../json.ts";
import { operatorOptions, withOperator, type OperatorFlags } from "../operator.ts";
import { plainLine } from "../plain.ts";
import { registrationState } from "../registration-text.ts";

interface RetireFlags extends OperatorFlags {
  readonly reason: string;
}

export function harnessRetireCommand(): Command {
  const command = define(
    "retire",
    "close a harness to new sessions",
    "New sessions can no longer use the harness; sessions that have it go on. Repeating it changes nothing; registering the same again brings " +
      "the harness back.",
    [["its successor is there", 'holdfast harness retire coder --reason "replaced by coder-2"']],
  )
    .argument("<name>", "the harness")
    .addOption(new Option("--reason <text>", "why; it is kept with the registration").makeOptionMandatory());
  return operatorOptions(command, "the HarnessRegistration, on one line").action((name: string, flags: RetireFlags) =>
    run(flags, ({ screen, signal }) =>
      withOperator(flags, async (transport) => {
        const request = create(RetireHarnessRequestSchema, { name, reason: flags.reason });
        const harness = await transport.unary(HarnessRegistry.method.retireHarness, request, { signal });
        if (screen.json) screen.value(messageJson(HarnessRegistrationSchema, harness));
        else screen.line(`harness ${plainLine(name)}  ${registrationState(harness)}  ${plainLine(harness.retireReason)}`.trimEnd());
        return 0;
      }),
    ),
  );
}
