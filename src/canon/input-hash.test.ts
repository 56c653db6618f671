import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import { MessageSchema, ToolChoiceSchema, ToolDefinitionSchema, type Message } from "../gen/agentsessions/v1/common_pb.ts";
import type { ModelRequest } from "../spi/model.ts";
import { awkwardText } from "../testing/awkward-values.ts";
import { modelRequest } from "../testing/events.ts";
import { goRequestJson } from "../testing/go-model-request.ts";
import { testDigest as digest } from "../testing/ports.ts";
import { compareUtf8 } from "./go-json.ts";
import { inputHash, inputHashJson, type HashedRequest } from "./index.ts";

const said = (init: MessageInitShape<typeof MessageSchema>): Message => create(MessageSchema, init);
const asks = (init: MessageInitShape<typeof MessageSchema>): HashedRequest => ({ model: "m", messages: [said(init)] });

describe("the input hash of a model request", () => {
  const vectors = JSON.parse(readFileSync(new URL("vectors/input-hash.json", import.meta.url), "utf8")) as {
    json: string;
    input_hash: string;
  }[];

  it("reproduces the vector", () => {
    const request = { model: "echo", messages: [said({ role: "user", parts: [{ part: { case: "text", value: { text: "hello" } } }] })] };
    expect(vectors).toHaveLength(1);
    expect(inputHashJson(request)).toBe(vectors[0]?.json);
    expect(inputHash(request, digest)).toBe(vectors[0]?.input_hash);
  });

  it("is over what the model of Go's encoder prints, for any request", () => {
    fc.assert(
      fc.property(modelRequest(), (request) => {
        expect(inputHashJson(request)).toBe(goRequestJson(request));
      }),
      { seed: 41, numRuns: 4000 },
    );
  });

  it("is the same before and after the wire", () => {
    fc.assert(
      fc.property(modelRequest(), (request) => {
        const messages = request.messages.map((message) => fromBinary(MessageSchema, toBinary(MessageSchema, message)));
        expect(inputHashJson({ ...request, messages })).toBe(inputHashJson(request));
      }),
      { seed: 42, numRuns: 2000 },
    );
  });

  it("takes the SPI's request as it is", () => {
    const request: ModelRequest = { model: "m", messages: [] };
    expect(inputHashJson(request satisfies HashedRequest)).toBe('{"Model":"m","Messages":null,"Params":null}');
  });

  it("writes what is absent as the contract says", () => {
    expect(inputHashJson({ model: "", messages: [], params: {}, tools: [], toolChoice: undefined })).toBe(
      '{"Model":"","Messages":null,"Params":null}',
    );
    expect(inputHashJson(asks({}))).toBe('{"Model":"m","Messages":[{"Role":"","Parts":[]}],"Params":null}');
    expect(inputHashJson({ model: "m", messages: [], toolChoice: create(ToolChoiceSchema) })).toBe(
      '{"Model":"m","Messages":null,"Params":null,"ToolChoice":{"Mode":"","Name":""}}',
    );
    expect(
      inputHashJson({ model: "m", messages: [], tools: [create(ToolDefinitionSchema), create(ToolDefinitionSchema, { inputSchema: {} })] }),
    ).toContain('"Tools":[{"Name":"","Description":"","InputSchema":null},{"Name":"","Description":"","InputSchema":{}}]');
  });

  it.each<readonly [MessageInitShape<typeof MessageSchema>, string]>([
    [{ parts: [{}] }, '{"Text":null,"File":null,"Data":null,"Reasoning":null}'],
    [{ parts: [{ part: { case: "data", value: {} } }] }, '{"Text":null,"File":null,"Data":null,"Reasoning":null}'],
    [{ parts: [{ part: { case: "data", value: { data: {} } } }] }, '{"Text":null,"File":null,"Data":{},"Reasoning":null}'],
    [
      { parts: [{ part: { case: "file", value: { source: { case: "bytes", value: new Uint8Array() } } } }] },
      '{"Text":null,"File":{"MIME":"","Bytes":null,"URI":"","Digest":"","Name":""},"Data":null,"Reasoning":null}',
    ],
    [
      { parts: [{ part: { case: "reasoning", value: { opaque: { case: "opaqueBytes", value: new Uint8Array([255]) }, ordinal: -1 } } }] },
      '{"Text":null,"File":null,"Data":null,"Reasoning":{"Provider":"","ModelID":"","Opaque":"/w==","OpaqueURI":"","OpaqueDigest":"","Summary":null,"ItemID":"","Ordinal":-1,"ValidityScope":""}}',
    ],
    [
      { parts: [{ part: { case: "toolCall", value: { mediation: 2 } } }] },
      '{"Text":null,"File":null,"Data":null,"Reasoning":null,"ToolCall":{"ID":"","Tool":"","Args":null,"Mediation":"CONTROLLER_MEDIATED","IdempotencyKey":""}}',
    ],
    [
      { parts: [{ part: { case: "toolResult", value: { code: 2, isError: true, content: [{}], approvalRequestSeq: 2n ** 53n + 1n } } }] },
      '{"Text":null,"File":null,"Data":null,"Reasoning":null,"ToolResult":{"ID":"","Output":null,"OutputURI":"","OutputDigest":"","IsError":true,"Error":"","Content":[{"Text":null,"File":null,"Data":null,"Reasoning":null}],"Code":2,"ApprovalRequestSeq":9007199254740993}}',
    ],
  ])("writes a part as the SPI's struct %#", (init, text) => {
    expect(inputHashJson(asks(init))).toBe(`{"Model":"m","Messages":[{"Role":"","Parts":[${text}]}],"Params":null}`);
  });

  it("escapes strings and keys for HTML, and sorts keys by their bytes", () => {
    const params = { "\u{10000}": "<&>", "\ue000": "\u2028\u2029", "<k>": '"\\\b\f\n\r\t\u0001\u007f\ufffd' };
    expect(inputHashJson({ model: "m", messages: [], params })).toBe(
      '{"Model":"m","Messages":null,"Params":{"\\u003ck\\u003e":"\\"\\\\\\b\\f\\n\\r\\t\\u0001\u007f\ufffd","\ue000":"\\u2028\\u2029","\u{10000}":"\\u003c\\u0026\\u003e"}}',
    );
  });

  it("writes numbers in maps in Go's form, −0 included", () => {
    const n = [-0, 0, 1e20, 1e21, -1.5e21, 1e-6, 1e-7, 0.1, 2 ** 53 + 1, 5e-324, 100];
    expect(inputHashJson(asks({ parts: [{ part: { case: "data", value: { data: { n } } } }] }))).toContain(
      '{"n":[-0,0,100000000000000000000,1e+21,-1.5e+21,0.000001,1e-7,0.1,9007199254740992,5e-324,100]}',
    );
  });

  it.each<readonly [string, HashedRequest, string]>([
    ["NaN", asks({ parts: [{}, { part: { case: "data", value: { data: { a: [NaN] } } } }] }), "messages[0].parts[1].data.data.a[0]"],
    [
      "an infinity in a schema",
      { model: "m", messages: [], tools: [create(ToolDefinitionSchema, { inputSchema: { max: Infinity } })] },
      "tools[0].input_schema.max",
    ],
    ["a lone surrogate", asks({ parts: [{ part: { case: "text", value: { text: "\ud800" } } }] }), "messages[0].parts[0].text.text"],
    ["a lone surrogate in params", { model: "m", messages: [], params: { p: "\ud800" } }, "params.p"],
    ["a lone surrogate in the model", { model: "\ud800", messages: [] }, "model"],
    [
      "an unsafe integer in tool arguments",
      asks({ parts: [{ part: { case: "toolCall", value: { args: { n: 2 ** 53 } } } }] }),
      "messages[0].parts[0].tool_call.args.n",
    ],
  ])("is refused for %s, with the field path", (_, request, field) => {
    const refusal = ((): unknown => {
      try {
        return inputHashJson(request);
      } catch (error) {
        return error;
      }
    })();
    expect(refusal).toBeInstanceOf(HoldfastError);
    expect(refusal).toMatchObject({ code: "invalid_argument", field });
  });
});

describe("the order of keys by their bytes", () => {
  it("is the order of their UTF-8", () => {
    fc.assert(
      fc.property(awkwardText(), awkwardText(), (left, right) => {
        expect(Math.sign(compareUtf8(left, right))).toBe(Buffer.compare(Buffer.from(left), Buffer.from(right)));
      }),
      { seed: 43, numRuns: 4000 },
    );
  });
});
