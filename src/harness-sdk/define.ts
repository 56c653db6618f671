/** A harness from what its author writes. */

import { invalidArgument } from "../base/errors.ts";
import { Resumability, type HarnessDescriptor, type ToolSpec } from "../gen/agentsessions/v1/harness_pb.ts";
import type { Harness, Start } from "../spi/harness.ts";
import type { Capabilities, Mediation } from "../spi/wire.ts";
import { AuthorSink, type TurnSink } from "./author-sink.ts";

/** A tool that a harness may call. */
export interface DeclaredTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** Who runs it: the harness itself, the host, or the host once the call was approved. */
  readonly mediation: Mediation;
}

/** What a turn is given beside its start and its sink. */
export interface TurnContext {
  /** Fires when the turn is cancelled and at its deadline; pass it on to whatever takes long. */
  readonly signal: AbortSignal;
}

/** A harness as its author writes it. */
export interface HarnessDefinition {
  readonly id: string;
  /** Recorded with every turn; an interrupted turn is resumed by the same version only. Change it when the harness asks for other things. */
  readonly version: string;
  /** Default: replayed from history alone, and then safe to fork. */
  readonly capabilities?: Partial<Omit<Capabilities, "$typeName" | "$unknown">> | undefined;
  /** The models that it needs; none means any. */
  readonly models?: readonly string[] | undefined;
  readonly tools?: readonly DeclaredTool[] | undefined;
  /**
   * Drives one turn. Resolving completes it; throwing `HarnessFailure` fails it for good; any other throw interrupts it, and it can be
   * resumed. Run again with the same start and the same answers it must ask for the same.
   */
  readonly run: (start: Start, sink: TurnSink, context: TurnContext) => Promise<void>;
}

/** Makes a harness. Throws INVALID_ARGUMENT for a definition without an id, or with two tools of one name. */
export function defineHarness(definition: HarnessDefinition): Harness {
  const descriptor = descriptorOf(definition);
  return {
    describe: async () => descriptor,
    run: async (start, sink, options) => {
      const own = new AuthorSink(sink, start, descriptor.tools);
      await definition.run(start, own, options);
      own.refuseSwallowedPark();
    },
  };
}

function descriptorOf({ id, version, models = [], tools = [], capabilities = {} }: HarnessDefinition): HarnessDescriptor {
  if (id === "") throw invalidArgument("id", "must name the harness");
  if (new Set(tools.map(({ name }) => name)).size < tools.length) throw invalidArgument("tools", "must have one entry for each name");
  const { resumability = Resumability.STATELESS_REPLAY, ...others } = capabilities;
  return {
    $typeName: "agentsessions.v1.HarnessDescriptor",
    id,
    version,
    models: [...models],
    tools: tools.map((tool): ToolSpec => ({ $typeName: "agentsessions.v1.ToolSpec", description: "", ...tool }) as ToolSpec),
    capabilities: {
      $typeName: "agentsessions.v1.Capabilities",
      resumability,
      forkSafe: others.forkSafe ?? resumability === Resumability.STATELESS_REPLAY,
      requiresGpu: others.requiresGpu ?? false,
      streaming: others.streaming ?? false,
      reasoningReplay: others.reasoningReplay ?? false,
    },
  };
}
