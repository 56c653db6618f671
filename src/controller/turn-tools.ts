/** The tools of a turn: its own and those of its host. */

import { joinTools, type ToolExecutor, type TurnTools, type TurnToolsRequest } from "../spi/index.ts";

/** What runs a turn's tools: its own go before the host's. Undefined where there are none. */
export function executorOf(
  { tools, turnTools }: { readonly tools?: ToolExecutor | undefined; readonly turnTools?: TurnTools | undefined },
  turn: TurnToolsRequest,
): ToolExecutor | undefined {
  const own = turnTools?.(turn);
  if (own === undefined || tools === undefined) return own ?? tools;
  return joinTools(own, tools);
}
