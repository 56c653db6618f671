/**
 * Server reflection, v1 and v1alpha. The two differ in their package's name alone, so one implementation answers both.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import type { handleBidiStreamingCall, ServerDuplexStream } from "@grpc/grpc-js";
import { ERROR_CODES, type ErrorCode } from "../../base/errors.ts";
import {
  ErrorResponseSchema,
  ExtensionNumberResponseSchema,
  FileDescriptorResponseSchema,
  ListServiceResponseSchema,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { statusOf } from "../../grpc/index.ts";
import { reported } from "../fault.ts";
import type { OpenCall, OpenCalls } from "./calls.ts";
import type { ServedFiles } from "./files.ts";
import { Outbox, type OutgoingMessage } from "./outbox.ts";
import { decodeRequest } from "./wire.ts";

/** The grpc-js handler of ServerReflectionInfo. */
export function serveReflection(calls: OpenCalls, files: ServedFiles): handleBidiStreamingCall<Uint8Array, OutgoingMessage> {
  return (call) => {
    const open = calls.open(call);
    // Whoever reads the requests must stop when the server closes.
    open.signal.addEventListener("abort", () => call.push(null), { once: true });
    void converse(calls, open, call, files);
  };
}

async function converse(
  calls: OpenCalls,
  open: OpenCall,
  call: ServerDuplexStream<Uint8Array, OutgoingMessage>,
  files: ServedFiles,
): Promise<void> {
  try {
    const outbox = new Outbox(call, calls.options.limits.streamBufferBytesMax, open.signal);
    // A stream that the loop destroyed could not be given its status.
    const requests: AsyncIterable<Uint8Array> = call.iterator({ destroyOnReturn: false });
    for await (const bytes of requests) {
      const response = reflect(decodeRequest(ServerReflectionRequestSchema, bytes, calls.options.limits.requestPartsMax), files);
      await outbox.send(toBinary(ServerReflectionResponseSchema, response));
    }
    open.signal.throwIfAborted();
    if (open.finish()) call.end();
  } catch (error) {
    const status = statusOf(reported(error, open.path, calls.options.log));
    if (open.finish()) call.emit("error", status);
  }
}

type Answer = ServerReflectionResponse["messageResponse"];

/** The answer to one question. */
export function reflect(request: ServerReflectionRequest, files: ServedFiles): ServerReflectionResponse {
  return create(ServerReflectionResponseSchema, {
    validHost: request.host,
    originalRequest: request,
    messageResponse: answerTo(request.messageRequest, files),
  });
}

function answerTo(question: ServerReflectionRequest["messageRequest"], files: ServedFiles): Answer {
  switch (question.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: create(ListServiceResponseSchema, { service: files.services.map((name) => ({ name })) }),
      };
    case "fileByFilename":
      return filesOf(files.byName(question.value), "file_by_filename: no served file has this name");
    case "fileContainingSymbol":
      return filesOf(files.bySymbol(question.value), "file_containing_symbol: no served file declares it");
    case "fileContainingExtension":
      return refused("not_found", "file_containing_extension: no served file declares extensions");
    case "allExtensionNumbersOfType":
      if (!files.hasMessage(question.value)) return refused("not_found", "all_extension_numbers_of_type: no served file declares it");
      return {
        case: "allExtensionNumbersResponse",
        value: create(ExtensionNumberResponseSchema, { baseTypeName: question.value }),
      };
    case undefined:
      return refused("invalid_argument", "message_request: must have a question");
  }
}

function filesOf(encoded: readonly Uint8Array[] | undefined, missing: string): Answer {
  if (encoded === undefined) return refused("not_found", missing);
  return { case: "fileDescriptorResponse", value: create(FileDescriptorResponseSchema, { fileDescriptorProto: [...encoded] }) };
}

function refused(code: ErrorCode, errorMessage: string): Answer {
  return { case: "errorResponse", value: create(ErrorResponseSchema, { errorCode: ERROR_CODES[code].grpc, errorMessage }) };
}
