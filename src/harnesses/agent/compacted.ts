/** What a new baseline makes smaller, for whoever watches. Pure. */

import type { Compaction } from "../../spi/index.ts";
import type { Baseline } from "../baseline.ts";
import type { Conversation } from "../conversation.ts";
import { requestSize, type RequestSizes } from "./compaction.ts";
import { messagesOf } from "./context.ts";

/** What `next` makes smaller of a conversation that is sent under `current`. A summary that is still to be made is a message of no size. */
export function compactionOf(
  conversation: Conversation,
  sizes: RequestSizes,
  { next, current }: { readonly next: Baseline; readonly current: Baseline },
): Compaction {
  const isSummarised = next.summary > current.summary;
  return {
    level: isSummarised ? "summary" : next.reasoning > current.reasoning ? "thinking" : "tool_results",
    messagesBefore: messageCount(conversation, current),
    messagesAfter: messageCount(conversation, next),
    tokensBefore: requestSize(sizes, current),
    tokensAfter: requestSize(isSummarised ? { ...sizes, summary: 0 } : sizes, next),
  };
}

/** How many messages of a conversation a model is sent. */
function messageCount({ entries }: Conversation, baseline: Baseline): number {
  return entries.reduce((sum, entry, index) => sum + messagesOf(entry, index, baseline).length, baseline.summary === 0 ? 0 : 1);
}
