/**
 * What a call has come to that the server did not answer with a result. Pure.
 *
 * Invariant: where the server may have done what it was asked, and the tool is not idempotent, the outcome is unknown, and the result says
 * so. Only what the server refused, or certainly never got, is a failure after which a new call can do no harm.
 */

import { create } from "@bufbuild/protobuf";
import { OAuthClientFlowError, ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { textStart } from "../../base/bytes.ts";
import { HoldfastError } from "../../base/index.ts";
import { PartSchema, ToolResultSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { unknownOutcome, type ToolResult } from "../../spi/index.ts";

export interface FailedCall {
  readonly isIdempotent: boolean;
  /** The turn, or the call, was given up. */
  readonly isCancelled: boolean;
  readonly timeoutMs: number;
}

const ERROR_BYTES_MAX = 8 * 1024;

/** The result of a call that ended in `error`. Throws for a failure of the host's or the line's, not of the tool's. */
export function failedCall(id: string, error: unknown, call: FailedCall): ToolResult {
  if (error instanceof HoldfastError) throw error;
  if (error instanceof ProtocolError) return toolFailure(id, error.message);
  const refusal = refusalOf(error);
  if (refusal !== undefined) throw new HoldfastError("unavailable", `tool: ${refusal}`, { cause: error });
  const why = whyUnknown(error, call);
  if (!call.isIdempotent) return unknownOutcome(id, `${why}, so whether it took effect is not known; it is not called again`);
  throw new HoldfastError("unavailable", `tool: ${why}; it is idempotent, so the call may be made again`, { cause: error });
}

/** Whether the server answered that it knows the connection's session no longer. */
export function isGoneSession(error: unknown): boolean {
  return error instanceof SdkHttpError && error.status === 404;
}

/** Why a call was certainly not taken up; undefined where it may have been. */
function refusalOf(error: unknown): string | undefined {
  // 408 is what a proxy says that waited too long for the server behind it.
  if (error instanceof SdkHttpError && error.status >= 300 && error.status < 500 && error.status !== 408) {
    return `its MCP server refused the call with HTTP status ${error.status}`;
  }
  if (error instanceof OAuthClientFlowError) return "its MCP server refused the host's credentials";
  if (error instanceof SdkError && error.code === SdkErrorCode.UnsupportedResultType) {
    return "its MCP server asks for more input, which this host does not give";
  }
  const isUnsent = (error instanceof Error && error.message === "Not connected") || isUnconnected(error);
  return isUnsent ? "its MCP server is not there, so the call was not made; try again later" : undefined;
}

/** No connection came about: nothing can have been sent over it. */
function isUnconnected(error: unknown): boolean {
  const { cause } = error instanceof TypeError ? error : { cause: undefined };
  return cause instanceof Error && "code" in cause && ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"].includes(String(cause.code));
}

function whyUnknown(error: unknown, { isCancelled, timeoutMs }: FailedCall): string {
  if (isCancelled) return "the call was cancelled while the tool ran";
  const code = error instanceof SdkError ? error.code : undefined;
  if (code === SdkErrorCode.RequestTimeout) return `the tool did not answer within ${timeoutMs} ms`;
  if (code === SdkErrorCode.InvalidResult) return "the tool answered with what is no result";
  return "the connection to its MCP server broke while the tool ran";
}

function toolFailure(id: string, message: string): ToolResult {
  const text = textStart(message.toWellFormed(), ERROR_BYTES_MAX) || "the tool failed and did not say why";
  const part = create(PartSchema, { part: { case: "text", value: { text } } });
  return create(ToolResultSchema, { id, isError: true, error: text, content: [part] });
}
