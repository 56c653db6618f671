/** `holdfast harness get` */

import { create } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { GetHarnessRequestSchema, HarnessRegistrationSchema, HarnessRegistry } from "../../gen/agentsessions/v1/harness_registry_pb.ts";
import { define, run } from "../define.ts";
import { messageJson } from "../json.ts";
import { operatorOptions, withOperator, type OperatorFlags } from "../operator.ts";
import { registrationLines } from "../registration-text.ts";

interface GetFlags extends OperatorFlags {
  readonly observe?: boolean;
}

export function harnessGetCommand(): Command {
  const command = define(
    "get",
    "show a harness",
    "Shows one harness: where it comes from, whether new sessions may use it, and what was registered.",
    [
      ["what was registered", "holdfast harness get coder"],
      ["and what it says of itself now", "holdfast harness get coder --observe"],
    ],
  )
    .argument("<name>", "the harness")
    .option("--observe", "ask the harness what it is; it has some seconds to answer");
  return operatorOptions(command, "the HarnessRegistration, on one line").action((name: string, flags: GetFlags) =>
    run(flags, ({ screen, signal }) =>
      withOperator(flags, async (transport) => {
        const request = create(GetHarnessRequestSchema, { name, observe: flags.observe === true });
        const harness = await transport.unary(HarnessRegistry.method.getHarness, request, { signal });
        if (screen.json) screen.value(messageJson(HarnessRegistrationSchema, harness));
        else for (const line of registrationLines(harness)) screen.line(line);
        return 0;
      }),
    ),
  );
}
