import { Metadata, status as GrpcStatus } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
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
