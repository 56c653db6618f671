import { create, fromBinary, toBinary, type DescMessage } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Metadata, type Client } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { errorOfStatus, rawMethod, type MethodDesc } from "../../grpc/index.ts";
import { openDoor } from "../../../e2e/support/grpc-door.ts";
import { ServedFiles } from "./files.ts";
import { reflect } from "./reflection.ts";
import { SERVICES } from "./server.ts";

const files = new ServedFiles(SERVICES);

type Question = ServerReflectionRequest["messageRequest"];

function answer(question: Question): ServerReflectionResponse["messageResponse"] {
  return reflect(create(ServerReflectionRequestSchema, { messageRequest: question }), files).messageResponse;
}

/** The names of the files in an answer. */
function fileNames(question: Question): string[] {
  const response = answer(question);
  if (response.case !== "fileDescriptorResponse") throw new Error(`no files: ${response.case}`);
  return response.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
}

function errorCode(question: Question): number {
  const response = answer(question);
  return response.case === "errorResponse" ? response.value.errorCode : 0;
}

describe("reflection", () => {
  it("lists every service", () => {
    const response = answer({ case: "listServices", value: "" });
    expect(response.case === "listServicesResponse" ? response.value.service.map(({ name }) => name) : []).toEqual([
      "agentsessions.v1.Sessions",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
      "holdfast.v1.Journal",
      "holdfast.v1.ToolCalls",
      "holdfast.v1.Turns",
    ]);
  });

  it("answers a symbol with its file and everything that the file imports, each once", () => {
    const symbols = [
      "agentsessions.v1.Sessions",
      "agentsessions.v1.Sessions.Exec",
      "agentsessions.v1.Session",
      "agentsessions.v1.Session.labels",
      "agentsessions.v1.ExecState",
    ];
    for (const symbol of symbols) {
      expect(fileNames({ case: "fileContainingSymbol", value: symbol }).toSorted()).toEqual([
        "agentsessions/v1/common.proto",
        "agentsessions/v1/session.proto",
        "google/protobuf/struct.proto",
        "google/protobuf/timestamp.proto",
      ]);
    }
    expect(fileNames({ case: "fileContainingSymbol", value: "holdfast.v1.ChainFault.Kind" })[0]).toBe("holdfast/v1/journal.proto");
    expect(fileNames({ case: "fileContainingSymbol", value: "google.protobuf.Value" })).toEqual(["google/protobuf/struct.proto"]);
  });

  it("answers a file's name, and every import of every file can be asked for", () => {
    for (const name of fileNames({ case: "fileByFilename", value: "holdfast/v1/journal.proto" })) {
      expect(fileNames({ case: "fileByFilename", value: name })[0]).toBe(name);
    }
  });

  it("says what it does not know", () => {
    expect(errorCode({ case: "fileByFilename", value: "nobody.proto" })).toBe(5);
    expect(errorCode({ case: "fileContainingSymbol", value: "nobody.v1.Nothing" })).toBe(5);
    expect(errorCode({ case: "fileContainingSymbol", value: "toString" })).toBe(5);
    expect(errorCode({ case: "allExtensionNumbersOfType", value: "nobody.v1.Nothing" })).toBe(5);
    expect(answer({ case: "allExtensionNumbersOfType", value: "agentsessions.v1.Session" }).case).toBe("allExtensionNumbersResponse");
    expect(errorCode({ case: undefined })).toBe(3);
  });
});

/** Asks over one stream and returns the answers. */
async function converse(client: Client, method: MethodDesc<DescMessage, DescMessage>, questions: readonly Uint8Array[]) {
  const { path, requestSerialize, responseDeserialize } = rawMethod(method);
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata());
  for (const question of questions) call.write(question);
  call.end();
  const answers: ServerReflectionResponse[] = [];
  try {
    for await (const bytes of call as AsyncIterable<Uint8Array>) answers.push(fromBinary(ServerReflectionResponseSchema, bytes));
  } catch (error) {
    throw errorOfStatus(error);
  }
  return answers;
}

const question = (messageRequest: Question) =>
  toBinary(ServerReflectionRequestSchema, create(ServerReflectionRequestSchema, { messageRequest }));

describe("the reflection services", () => {
  for (const service of [ServerReflection, ServerReflectionAlpha]) {
    it(`answer one question after the other, without a token: ${service.typeName}`, async () => {
      const { client, server } = await openDoor({ token: "sesame" });
      const answers = await converse(client, service.method.serverReflectionInfo, [
        question({ case: "listServices", value: "" }),
        question({ case: "fileContainingSymbol", value: "nobody" }),
        question({ case: "fileByFilename", value: "holdfast/v1/journal.proto" }),
      ]);
      expect(answers.map(({ messageResponse }) => messageResponse.case)).toEqual([
        "listServicesResponse",
        "errorResponse",
        "fileDescriptorResponse",
      ]);
      expect(server.openCalls).toBe(0);
    });
  }

  it("refuse what is no question", async () => {
    const { client } = await openDoor();
    const garbage = converse(client, ServerReflection.method.serverReflectionInfo, [Uint8Array.of(0xff)]);
    await expect(garbage).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("end when the server closes, and when the client cancels", async () => {
    const { client, health, server } = await openDoor();
    const { path, requestSerialize, responseDeserialize } = rawMethod(ServerReflection.method.serverReflectionInfo);
    const open = () => client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, new Metadata());
    const cancelled = open();
    cancelled.on("error", () => undefined);
    cancelled.write(question({ case: "listServices", value: "" }));
    await new Promise((resolve) => cancelled.once("data", resolve));
    cancelled.cancel();
    await expect.poll(() => server.openCalls).toBe(0);
    const open2 = open();
    open2.write(question({ case: "listServices", value: "" }));
    await new Promise((resolve) => open2.once("data", resolve));
    const error = new Promise((resolve) => open2.once("error", resolve));
    health.close();
    expect(errorOfStatus(await error)).toMatchObject({ code: "unavailable" });
  });
});
