/** `holdfast harness register` */

import { create } from "@bufbuild/protobuf";
import { Option, type Command } from "commander";
import { CapabilitiesSchema, Resumability, type Capabilities } from "../../gen/agentsessions/v1/harness_pb.ts";
import {
  HarnessRegistry,
  HarnessSpecSchema,
  RegisterHarnessRequestSchema,
  RegisterHarnessResponseSchema,
} from "../../gen/agentsessions/v1/harness_registry_pb.ts";
import { define, optionOr, run } from "../define.ts";
import { messageJson } from "../json.ts";
import { operatorOptions, withOperator, type OperatorFlags } from "../operator.ts";
import { plainLine } from "../plain.ts";
import { outcomeText } from "../registration-text.ts";

interface RegisterFlags extends OperatorFlags {
  readonly address: string;
  readonly descriptorId?: string;
  readonly requiresMemorySnapshot?: boolean;
  readonly requiresGpu?: boolean;
  readonly forkSafe?: boolean;
}

export function harnessRegisterCommand(): Command {
  const command = define(
    "register",
    "register a harness that is served at an address",
    "Gives a name to a harness that is served elsewhere; new sessions may use it at once. The same again changes nothing, and brings a retired " +
      "one back. What a name means never changes: another address gets another name.",
    [
      ["on this machine", "holdfast harness register coder --address unix:///run/coder.sock --descriptor-id coder"],
      ["on another one", "holdfast harness register writer --address writer.agents:7000"],
    ],
  )
    .argument("<name>", "1 to 63 lowercase letters, digits and hyphens")
    .addOption(new Option("--address <address>", "where it listens: unix:///path or host:port").makeOptionMandatory())
    .addOption(optionOr("--descriptor-id <id>", "the id that it must say it has", "any"))
    .option("--requires-memory-snapshot", "it keeps state in memory, and runs only where that is captured")
    .option("--requires-gpu", "it needs an accelerator")
    .option("--fork-safe", "a fork inside a turn does it no harm");
  return operatorOptions(command, "the RegisterHarnessResponse, on one line").action((name: string, flags: RegisterFlags) =>
    run(flags, ({ screen, signal }) =>
      withOperator(flags, async (transport) => {
        const request = create(RegisterHarnessRequestSchema, { name, spec: specOf(flags) });
        const response = await transport.unary(HarnessRegistry.method.registerHarness, request, { signal });
        if (screen.json) screen.value(messageJson(RegisterHarnessResponseSchema, response));
        else screen.line(`harness ${plainLine(name)}  ${outcomeText(response.outcome)}  ${plainLine(response.harness?.specDigest ?? "")}`);
        const reason = response.harness?.unservableReason ?? "";
        if (reason !== "") screen.hint(`it cannot be served: ${plainLine(reason)}`);
        return 0;
      }),
    ),
  );
}

function specOf({ address, descriptorId = "", ...flags }: RegisterFlags) {
  const capabilities = capabilitiesOf(flags);
  const placement = { case: "remote", value: { address } } as const;
  return create(HarnessSpecSchema, { placement, descriptorId, ...(capabilities === undefined ? {} : { capabilities }) });
}

/** Undefined when no flag says anything: the registration then says nothing of what the harness needs. */
function capabilitiesOf(flags: Pick<RegisterFlags, "requiresMemorySnapshot" | "requiresGpu" | "forkSafe">): Capabilities | undefined {
  const { requiresMemorySnapshot = false, requiresGpu = false, forkSafe = false } = flags;
  if (!requiresMemorySnapshot && !requiresGpu && !forkSafe) return undefined;
  const resumability = requiresMemorySnapshot ? Resumability.REQUIRES_MEMORY_SNAPSHOT : Resumability.UNSPECIFIED;
  return create(CapabilitiesSchema, { resumability, requiresGpu, forkSafe });
}
