import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeEvent, normaliseEvent } from "../canon/index.ts";
import { EventSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { ControllerFrameSchema } from "../gen/agentsessions/v1/harness_pb.ts";
import { HostFrameSchema } from "../gen/holdfast/v1/harness_wire_pb.ts";
import { event } from "../testing/events.ts";
import { encodeControllerFrame, encodeHostFrame, type HostFrameInit } from "./index.ts";

const events = fc.array(event({ scope: "recordable" }).map(normaliseEvent), { maxLength: 6 });

describe("a frame whose events are encoded already", () => {
  it("is the frame that has them as a list: a start", () => {
    fc.assert(
      fc.property(events, fc.nat(2 ** 32 - 1), fc.string({ unit: "grapheme" }), (history, exchange, session) => {
        const start = { config: new Uint8Array([1]), inputs: [{ role: "user" }], resumeFromSeq: -3n };
        const value = { session, executionId: "e", frame: { case: "start", value: start } } as const;
        const frame: HostFrameInit = { exchange, frame: { case: "controller", value } };
        const expected = create(HostFrameSchema, frame);
        if (expected.frame.case !== "controller" || expected.frame.value.frame.case !== "start") throw new Error("another frame");
        expected.frame.value.frame.value.history = history;
        const encoded = history.map(encodeEvent);
        expect(fromBinary(HostFrameSchema, encodeHostFrame(frame, encoded))).toEqual(
          fromBinary(HostFrameSchema, toBinary(HostFrameSchema, expected)),
        );
        const controller = fromBinary(ControllerFrameSchema, encodeControllerFrame(value, encoded));
        expect(controller).toEqual(fromBinary(ControllerFrameSchema, toBinary(ControllerFrameSchema, expected.frame.value)));
      }),
    );
  });

  it("is the frame that has them as a list: a page", () => {
    fc.assert(
      fc.property(events, fc.boolean(), (page, last) => {
        const frame: HostFrameInit = { exchange: 9, frame: { case: "history", value: { read: 3, firstSeq: 5n, last } } };
        const decoded = fromBinary(HostFrameSchema, encodeHostFrame(frame, page.map(encodeEvent)));
        const copies = page.map((one) => fromBinary(EventSchema, toBinary(EventSchema, one)));
        expect(decoded.frame).toMatchObject({ case: "history", value: { read: 3, firstSeq: 5n, last, events: copies } });
      }),
    );
  });

  it("is refused where a frame has no such list", () => {
    const refused: HostFrameInit = { exchange: 1, frame: { case: "refused", value: { eventOrdinal: 1n } } };
    expect(() => encodeHostFrame(refused, [new Uint8Array()])).toThrow(TypeError);
    const cancel = { frame: { case: "cancel", value: { reason: "USER" } } } as const;
    expect(() => encodeControllerFrame(cancel, [new Uint8Array()])).toThrow(TypeError);
  });
});
