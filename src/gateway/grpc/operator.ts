/**
 * The gRPC door of a host's operator: the registry of harnesses, and nothing of sessions. It has a port and a token of its own, because
 * it decides what the host dials and pays for.
 */

import { HarnessRegistry } from "../../gen/agentsessions/v1/harness_registry_pb.ts";
import type { HarnessRegistryService } from "../../service/index.ts";
import { createGrpcDoor, type GrpcDoorOptions, type GrpcServer } from "./door.ts";
import { serveUnary } from "./unary.ts";

export interface OperatorServerOptions extends GrpcDoorOptions {
  readonly registry: HarnessRegistryService;
}

/** Creates the operator's door. */
export function createOperatorServer(options: OperatorServerOptions): GrpcServer {
  const { registry } = options;
  const { method } = HarnessRegistry;
  return createGrpcDoor(options, (calls) => [
    [
      HarnessRegistry,
      {
        RegisterHarness: serveUnary(calls, method.registerHarness, (request, context) => registry.registerHarness(request, context)),
        GetHarness: serveUnary(calls, method.getHarness, (request, context) => registry.getHarness(request, context)),
        ListHarnesses: serveUnary(calls, method.listHarnesses, (request, context) => registry.listHarnesses(request, context)),
        RetireHarness: serveUnary(calls, method.retireHarness, (request, context) => registry.retireHarness(request, context)),
      },
    ],
  ]);
}
