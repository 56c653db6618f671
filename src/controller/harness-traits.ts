/** What follows from what a harness says of itself. */

import { Mediation, Resumability, type HarnessDescriptor } from "../spi/index.ts";

/** Whether every tool of a harness is run by the host, so that the harness acts on the world through the host only. */
export function actsThroughHostOnly(descriptor: HarnessDescriptor): boolean {
  return descriptor.tools.every(
    (tool) => tool.mediation === Mediation.CONTROLLER_MEDIATED || tool.mediation === Mediation.REQUIRES_APPROVAL,
  );
}

/** Whether a harness can be unwound at an approval and driven again from its record: it keeps nothing that the journal does not hold. */
export function mayPark({ capabilities }: HarnessDescriptor): boolean {
  return capabilities?.resumability === Resumability.STATELESS_REPLAY;
}
