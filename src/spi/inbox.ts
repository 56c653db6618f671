/**
 * The inbox: messages that callers send while a turn runs. A harness that wants them asks the host for this tool, as CONTROLLER_MEDIATED and
 * without arguments; its result is what has come, so it is on record and a replay is given the same. It is never on offer to a model.
 */

import { create } from "@bufbuild/protobuf";
import { MessageSchema, type Message, type ToolResult } from "../gen/agentsessions/v1/common_pb.ts";

/** The tool's name; no tool that a model can be offered has a dot in its name. */
export const INBOX_TOOL = "holdfast.inbox";

/** What has come, as one message of the user's; undefined where nothing has. */
export function inboxMessage({ isError, content }: ToolResult): Message | undefined {
  return isError || content.length === 0 ? undefined : create(MessageSchema, { role: "user", parts: content });
}
