import { create, toBinary, type DescMessage } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/errors.ts";
import { MessageSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { CreateSessionRequestSchema, ExecRequestSchema, ListSessionsRequestSchema } from "../../gen/agentsessions/v1/session_pb.ts";
import { decodeRequest as decodeWithin } from "./wire.ts";

const decodeRequest = <Desc extends DescMessage>(desc: Desc, bytes: Uint8Array) => decodeWithin(desc, bytes, 1_000);

/** The error that a request is refused with. */
function refusal(read: () => unknown): string {
  try {
    read();
    return "taken";
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe("invalid_argument");
    expect(error.message.startsWith(`${error.field}: `)).toBe(true);
    return error.message;
  }
}

const bytesOf = (write: (writer: BinaryWriter) => BinaryWriter): Uint8Array => write(new BinaryWriter()).finish();

describe("a request's bytes", () => {
  it("are the message that was sent, empty ones and maps included", () => {
    const request = create(CreateSessionRequestSchema, {
      session: { metadata: { name: "n" }, labels: { a: "b" }, annotations: { c: "é" }, lastSeq: 7n },
    });
    expect(decodeRequest(CreateSessionRequestSchema, toBinary(CreateSessionRequestSchema, request))).toEqual(request);
    expect(decodeRequest(ExecRequestSchema, new Uint8Array())).toEqual(create(ExecRequestSchema));
  });

  it("may have fields that a newer client knows, groups too", () => {
    const bytes = bytesOf((writer) =>
      writer
        .tag(2, WireType.Varint)
        .int32(3)
        .tag(900, WireType.LengthDelimited)
        .string("new")
        .tag(901, WireType.StartGroup)
        .tag(901, WireType.EndGroup),
    );
    expect(decodeRequest(ListSessionsRequestSchema, bytes).pageSize).toBe(3);
  });

  it("are refused where a field has another type than the contract's, by its name", () => {
    const wrong: readonly (readonly [string, Uint8Array])[] = [
      ["page_size: must be a number", bytesOf((writer) => writer.tag(2, WireType.LengthDelimited).string("ten"))],
      ["project: must be a string", bytesOf((writer) => writer.tag(1, WireType.Varint).int32(1))],
      ["page_token: must be a string", bytesOf((writer) => writer.tag(3, WireType.Bit64).fixed64(1n))],
    ];
    for (const [message, bytes] of wrong) expect(refusal(() => decodeRequest(ListSessionsRequestSchema, bytes))).toBe(message);
    const config = bytesOf((writer) => writer.tag(5, WireType.Varint).int32(1));
    expect(refusal(() => decodeRequest(ExecRequestSchema, config))).toBe("config: must be bytes");
  });

  it("are refused where a text is not UTF-8, however deep, by its path", () => {
    const raw = Uint8Array.of(0xff, 0xfe);
    const text = bytesOf((writer) => writer.tag(1, WireType.LengthDelimited).bytes(raw));
    const part = bytesOf((writer) => writer.tag(1, WireType.LengthDelimited).bytes(text));
    const message = bytesOf((writer) => writer.tag(2, WireType.LengthDelimited).bytes(part));
    const fine = toBinary(MessageSchema, create(MessageSchema, { role: "user" }));
    const request = bytesOf((writer) =>
      writer.tag(2, WireType.LengthDelimited).bytes(fine).tag(2, WireType.LengthDelimited).bytes(message),
    );
    expect(refusal(() => decodeRequest(ExecRequestSchema, request))).toBe("inputs[1].parts[0].text.text: must be UTF-8");
    const entry = bytesOf((writer) => writer.tag(1, WireType.LengthDelimited).bytes(raw));
    const session = bytesOf((writer) => writer.tag(11, WireType.LengthDelimited).bytes(entry));
    const labelled = bytesOf((writer) => writer.tag(1, WireType.LengthDelimited).bytes(session));
    expect(refusal(() => decodeRequest(CreateSessionRequestSchema, labelled))).toBe("session.labels.key: must be UTF-8");
  });

  it("are refused where they are cut off or no protobuf at all", () => {
    const whole = toBinary(ExecRequestSchema, create(ExecRequestSchema, { session: "abc", inputs: [{ role: "user" }] }));
    const lengthOfFirstField = 5;
    for (let length = 1; length < whole.length; length++) {
      const outcome = refusal(() => decodeRequest(ExecRequestSchema, whole.subarray(0, length)));
      // A cut between two fields leaves a shorter message, which nobody can tell from a whole one.
      expect(outcome).toContain(length === lengthOfFirstField ? "taken" : "cut off");
    }
    expect(refusal(() => decodeRequest(ExecRequestSchema, Uint8Array.of(0x0f)))).toContain("request: ");
    expect(refusal(() => decodeRequest(ExecRequestSchema, new Uint8Array(64).fill(0xff)))).toContain("request: ");
  });

  it("are refused where they are nested without end", () => {
    let bytes: Uint8Array = new Uint8Array();
    for (let depth = 0; depth < 300; depth++) {
      const inner = bytes;
      const reasoning = bytesOf((writer) => writer.tag(5, WireType.LengthDelimited).bytes(inner));
      bytes = bytesOf((writer) => writer.tag(4, WireType.LengthDelimited).bytes(reasoning));
    }
    const message = bytesOf((writer) => writer.tag(2, WireType.LengthDelimited).bytes(bytes));
    const request = bytesOf((writer) => writer.tag(2, WireType.LengthDelimited).bytes(message));
    expect(refusal(() => decodeRequest(ExecRequestSchema, request))).toContain("nested too deeply");
  });

  describe("are counted before they are decoded: as many fields as are allowed, and not one more", () => {
    const empty = (number: number, times: number) =>
      bytesOf((writer) => {
        for (let time = 0; time < times; time++) writer.tag(number, WireType.LengthDelimited).bytes(new Uint8Array());
        return writer;
      });
    const inside = (number: number, bytes: Uint8Array) => bytesOf((writer) => writer.tag(number, WireType.LengthDelimited).bytes(bytes));
    const group = (times: number) =>
      bytesOf((writer) => {
        writer.tag(900, WireType.StartGroup);
        for (let time = 0; time < times; time++) writer.tag(7, WireType.Varint).int32(1);
        return writer.tag(900, WireType.EndGroup);
      });
    it.each([
      ["messages", ExecRequestSchema, (fields: number) => empty(2, fields)],
      ["parts of a message", ExecRequestSchema, (fields: number) => inside(2, empty(2, fields - 1))],
      ["entries of a map", CreateSessionRequestSchema, (fields: number) => inside(1, empty(11, fields - 1))],
      ["unknown fields", ExecRequestSchema, (fields: number) => empty(900, fields)],
      ["fields of an unknown group", ExecRequestSchema, (fields: number) => group(fields - 2)],
      ["fields of an unknown group inside", ExecRequestSchema, (fields: number) => inside(2, group(fields - 3))],
    ] as const)("%s", (_, schema, bytes) => {
      expect(() => decodeWithin(schema, bytes(50), 50)).not.toThrow();
      expect(() => decodeWithin(schema, bytes(51), 50)).toThrow(
        expect.objectContaining({
          code: "resource_exhausted",
          message: "request: must have at most 50 fields, nested ones included",
          field: "request",
        }),
      );
    });
  });
});
