import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { GetSessionRequestSchema, Sessions } from "../gen/agentsessions/v1/session_pb.ts";
import { clientMethod, rawClientMethod, rawMethod } from "./method.ts";

describe("a method definition", () => {
  it("has the path and the streams of its descriptor", () => {
    expect(clientMethod(Sessions.method.exec)).toMatchObject({
      path: "/agentsessions.v1.Sessions/Exec",
      requestStream: false,
      responseStream: true,
    });
    expect(rawMethod(Sessions.method.getSession)).toMatchObject({ requestStream: false, responseStream: false });
    expect(rawMethod(Sessions.method.fork).path).toBe("/agentsessions.v1.Sessions/Fork");
  });

  it("sends a message and its ready encoding as the same bytes", () => {
    const request = create(GetSessionRequestSchema, { uid: "u" });
    const { requestSerialize } = clientMethod(Sessions.method.getSession);
    expect(requestSerialize(request)).toEqual(requestSerialize(toBinary(GetSessionRequestSchema, request)));
  });

  it("sends a part of a larger buffer as that part, over the same memory", () => {
    const whole = new Uint8Array([1, 2, 3, 4, 5]);
    const sent = rawMethod(Sessions.method.replay).responseSerialize(whole.subarray(1, 3));
    expect([...sent]).toEqual([2, 3]);
    whole[1] = 9;
    expect(sent[0]).toBe(9);
  });

  it("leaves responses alone when a client asks for bytes", () => {
    const bytes = Buffer.from([0xff, 0xff]);
    expect(rawClientMethod(Sessions.method.replay).responseDeserialize(bytes)).toBe(bytes);
    expect(() => clientMethod(Sessions.method.replay).responseDeserialize(bytes)).toThrow();
  });

  it("gives a server the request's bytes, so that it can answer for what it cannot decode", () => {
    const request = toBinary(GetSessionRequestSchema, create(GetSessionRequestSchema, { uid: "u" }));
    expect(rawMethod(Sessions.method.getSession).requestDeserialize(Buffer.from(request))).toEqual(Buffer.from(request));
  });
});
