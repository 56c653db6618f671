import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { Client, credentials, Metadata, status as GrpcStatus } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { ERROR_CODES, HoldfastError, invalidArgument, type ErrorCode } from "../base/index.ts";
import { CODE_KEY, errorOfStatus, FIELD_KEY, statusOf } from "./status.ts";

/** The error as a client's grpc-js makes it of a status that came. */
function serviceError(code: number, details: string, metadata = new Metadata()): Error {
  return Object.assign(new Error(`${code} ${details}`), { code, details, metadata });
}

describe("an error on its way through gRPC", () => {
  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    it(`arrives as it left: ${code}`, () => {
      const left = new HoldfastError(code, "page_size: must not be negative", { field: "page_size" });
      const status = statusOf(left);
      expect(GrpcStatus[status.code]).toBe(code.toUpperCase());
      const arrived = errorOfStatus(serviceError(status.code, status.details, status.metadata));
      expect(arrived).toMatchObject({ code, message: left.message, field: "page_size" });
    });
  }

  it("leaves details and cause at home", () => {
    const status = statusOf(
      new HoldfastError("internal", "an internal error", { details: { path: "/secret" }, cause: new Error("secret") }),
    );
    expect(JSON.stringify([status.details, status.metadata.getMap()])).not.toContain("secret");
  });

  it("names the field in its metadata, and leaves out what no header can hold", () => {
    expect(statusOf(invalidArgument("inputs[2].parts[0]", "must have content")).metadata.get(FIELD_KEY)).toEqual(["inputs[2].parts[0]"]);
    expect(statusOf(invalidArgument("labels[\n]", "must have no control characters")).metadata.get(FIELD_KEY)).toEqual([]);
  });

  it("can always be sent, lone surrogates or not", () => {
    expect(() => encodeURI(statusOf(new HoldfastError("aborted", "lone \ud800 half")).details)).not.toThrow();
  });
});

describe("a connection that a peer ends under a call", () => {
  /** What a call comes to whose peer does this with it. */
  async function called(peer: (stream: ServerHttp2Stream) => void): Promise<HoldfastError> {
    const server = createServer();
    server.on("stream", (stream) => {
      stream.on("error", () => undefined);
      peer(stream);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const client = new Client(`127.0.0.1:${(server.address() as AddressInfo).port}`, credentials.createInsecure());
    onTestFinished(() => {
      client.close();
      server.close();
    });
    const bytes = (value: Buffer): Buffer => value;
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest("/a.B/C", bytes, bytes, Buffer.of(), (error) =>
        error === null ? reject(new Error("it was answered")) : resolve(errorOfStatus(error)),
      );
    });
  }

  it.each<[string, (stream: ServerHttp2Stream) => void]>([
    ["with an error code, as for too many calls that were cancelled", ({ session }) => session?.destroy(new Error("enough"), 2)],
    ["by resetting the call", (stream) => stream.close(2)],
    ["by cutting the line", ({ session }) => void session?.socket.destroy()],
  ])("is UNAVAILABLE: %s", async (_, peer) => {
    expect(await called(peer)).toMatchObject({ code: "unavailable" });
  });
});

describe("a status from elsewhere", () => {
  it("keeps a foreign server's words where they are about the request", () => {
    expect(errorOfStatus(serviceError(GrpcStatus.NOT_FOUND, "no such session"))).toMatchObject({
      code: "not_found",
      message: "no such session",
    });
  });

  it("replaces the words that grpc-js makes up, which name peers", () => {
    for (const code of [GrpcStatus.UNAVAILABLE, GrpcStatus.DEADLINE_EXCEEDED, GrpcStatus.INTERNAL, GrpcStatus.CANCELLED]) {
      const error = errorOfStatus(serviceError(code, "connect ECONNREFUSED 10.0.0.7:8080"));
      expect(error.message).not.toContain("10.0.0.7");
      expect(error.facts.grpc).toBe(code);
    }
  });

  it("maps codes outside the closed set", () => {
    expect(errorOfStatus(serviceError(GrpcStatus.OUT_OF_RANGE, "past the end")).code).toBe("invalid_argument");
    expect(errorOfStatus(serviceError(GrpcStatus.UNKNOWN, "?")).code).toBe("internal");
    expect(errorOfStatus(new Error("not a status")).code).toBe("internal");
  });

  it("does not trust a code that is none", () => {
    const metadata = new Metadata();
    metadata.set(CODE_KEY, "tostring");
    expect(errorOfStatus(serviceError(GrpcStatus.ABORTED, "lost a race", metadata)).code).toBe("aborted");
  });
});
