import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError, type ErrorCode } from "../base/index.ts";
import { CreateSessionRequestSchema, ExecRequestSchema, SessionSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { MessageSchema, type Part } from "../gen/agentsessions/v1/common_pb.ts";
import { TailRequestSchema } from "../gen/holdfast/v1/journal_pb.ts";
import { parseExec } from "./exec-request.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "./limits.ts";
import { parseTail } from "./read-request.ts";
import { parseCreateSession } from "./session-request.ts";

const LIMITS: ServiceLimits = {
  ...SERVICE_LIMITS,
  nameCharsMax: 5,
  resourceCharsMax: 6,
  labelsMax: 2,
  annotationsMax: 2,
  keyCharsMax: 3,
  labelValueCharsMax: 4,
  annotationsBytesMax: 10,
  provenanceCharsMax: 4,
  originAttributesMax: 1,
  inputsMax: 2,
  partsMax: 2,
  configBytesMax: 3,
  nestingMax: 8,
};

/** How a request is refused; undefined when it is taken. */
function refusal(parse: () => unknown): { code: ErrorCode; field: string | undefined } | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.message.startsWith(`${error.field}: `)).toBe(true);
    return { code: error.code, field: error.field };
  }
}

const ofSession = (session: MessageInitShape<typeof SessionSchema>) =>
  refusal(() => parseCreateSession(create(CreateSessionRequestSchema, { session: create(SessionSchema, session) }), LIMITS));
const ofExec = (request: MessageInitShape<typeof ExecRequestSchema>) =>
  refusal(() => parseExec(create(ExecRequestSchema, request), LIMITS));
const invalid = (field: string) => ({ code: "invalid_argument", field });
const over = (field: string) => ({ code: "resource_exhausted", field });

describe("a session to be created", () => {
  it("must be given", () => {
    expect(refusal(() => parseCreateSession(create(CreateSessionRequestSchema), LIMITS))).toEqual(invalid("session"));
    expect(ofSession({})).toBeUndefined();
  });

  const outputOnly: readonly (readonly [string, MessageInitShape<typeof SessionSchema>])[] = [
    ["session.metadata.uid", { metadata: { uid: "u" } }],
    ["session.metadata.version", { metadata: { version: 1n } }],
    ["session.metadata.create_time", { metadata: { createTime: {} } }],
    ["session.metadata.update_time", { metadata: { updateTime: {} } }],
    ["session.last_seq", { lastSeq: 1n }],
    ["session.parent_uid", { parentUid: "p" }],
    ["session.fork_seq", { forkSeq: 1n }],
    ["session.compute", { compute: {} }],
    ["session.exec_state", { execState: 1 }],
    ["session.compute_state", { computeState: 1 }],
    ["session.pending_approval", { pendingApproval: {} }],
    ["session.deletion_state", { deletionState: 1 }],
  ];
  for (const [field, session] of outputOnly) {
    it(`may not have ${field}, which the server sets`, () => {
      expect(ofSession(session)).toEqual(invalid(field));
    });
  }

  it("may have every field that a caller decides, and no other is known", () => {
    const decided = ["metadata", "harness", "model", "identity", "origin", "labels", "annotations"];
    const set = new Set(outputOnly.map(([field]) => field.split(".")[1]));
    const known = SessionSchema.fields.map((field) => field.name);
    expect(known.filter((name) => !set.has(name)).toSorted()).toEqual(decided.filter((name) => name !== "metadata").toSorted());
  });

  const edges: readonly (readonly [string, MessageInitShape<typeof SessionSchema>, MessageInitShape<typeof SessionSchema>, object])[] = [
    ["project", { metadata: { project: "12345" } }, { metadata: { project: "123456" } }, invalid("session.metadata.project")],
    ["name", { metadata: { name: "1 3 5" } }, { metadata: { name: "123456" } }, invalid("session.metadata.name")],
    ["name's white space", { metadata: { name: "a b" } }, { metadata: { name: " ab" } }, invalid("session.metadata.name")],
    ["name's control characters", { metadata: { name: "é" } }, { metadata: { name: "a\tb" } }, invalid("session.metadata.name")],
    ["name's surrogates", { metadata: { name: "😀" } }, { metadata: { name: "\ud83d" } }, invalid("session.metadata.name")],
    ["harness", { harness: "123456" }, { harness: "1234567" }, invalid("session.harness")],
    ["model", { model: "123456" }, { model: "1234567" }, invalid("session.model")],
    ["number of labels", { labels: { a: "", b: "" } }, { labels: { a: "", b: "", c: "" } }, over("session.labels")],
    ["label's key", { labels: { abc: "" } }, { labels: { abcd: "" } }, invalid("session.labels")],
    ["label's empty key", { labels: {} }, { labels: { "": "" } }, invalid("session.labels")],
    ["label's value", { labels: { a: "1234" } }, { labels: { a: "12345" } }, invalid("session.labels")],
    ["label's line breaks", { labels: { a: "b" } }, { labels: { a: "\n" } }, invalid("session.labels")],
    ["annotations' number", { annotations: { a: "", b: "" } }, { annotations: { a: "", b: "", c: "" } }, over("session.annotations")],
    ["annotations' bytes", { annotations: { a: "\n23456789" } }, { annotations: { a: "123456789é" } }, over("session.annotations")],
    ["annotation's surrogates", { annotations: { a: "😀" } }, { annotations: { a: "\udc00" } }, invalid("session.annotations")],
    ["principal", { identity: { principal: "1234" } }, { identity: { principal: "12345" } }, invalid("session.identity.principal")],
    ["issuer", { identity: { issuer: "1234" } }, { identity: { issuer: "12345" } }, invalid("session.identity.issuer")],
    ["subject", { identity: { subject: "1234" } }, { identity: { subject: "12345" } }, invalid("session.identity.subject")],
    ["origin's source", { origin: { source: "1234" } }, { origin: { source: "12345" } }, invalid("session.origin.source")],
    ["origin's uri", { origin: { uri: "1234" } }, { origin: { uri: "a\u0000" } }, invalid("session.origin.uri")],
    [
      "origin's attributes",
      { origin: { attributes: { a: "" } } },
      { origin: { attributes: { a: "", b: "" } } },
      over("session.origin.attributes"),
    ],
  ];
  for (const [what, taken, refused, expected] of edges) {
    it(`is bounded in its ${what}`, () => {
      expect(ofSession(taken)).toBeUndefined();
      expect(ofSession(refused)).toEqual(expected);
    });
  }
});

describe("an Exec", () => {
  const message = (parts: MessageInitShape<typeof MessageSchema>["parts"], role = "user") =>
    create(MessageSchema, { role, parts: parts ?? [] });
  const text = message([{ part: { case: "text", value: { text: "x" } } }]);

  it("has a session by its uid, or none", () => {
    expect(ofExec({ session: "" })).toBeUndefined();
    expect(ofExec({ session: "x".repeat(128) })).toBeUndefined();
    expect(ofExec({ session: "x".repeat(129) })).toEqual(invalid("session"));
    expect(ofExec({ session: "a\u007f" })).toEqual(invalid("session"));
  });

  it("is bounded in its messages, parts, config and harness", () => {
    expect(ofExec({ inputs: [text, text] })).toBeUndefined();
    expect(ofExec({ inputs: [text, text, text] })).toEqual(over("inputs"));
    expect(ofExec({ inputs: [text, message([...text.parts, ...text.parts, ...text.parts])] })).toEqual(over("inputs[1].parts"));
    expect(ofExec({ config: new Uint8Array(3) })).toBeUndefined();
    expect(ofExec({ config: new Uint8Array(4) })).toEqual(over("config"));
    expect(ofExec({ harness: "1234567" })).toEqual(invalid("harness"));
  });

  it("has a role that the contract knows on every message", () => {
    for (const role of ["system", "user", "assistant", "tool"]) expect(ofExec({ inputs: [message([], role)] })).toBeUndefined();
    for (const role of ["", "User", "human"]) expect(ofExec({ inputs: [text, message([], role)] })).toEqual(invalid("inputs[1].role"));
  });

  it("has content in every part, nested ones too", () => {
    const empty: MessageInitShape<typeof MessageSchema> = { parts: [{}] };
    expect(ofExec({ inputs: [message(empty.parts)] })).toEqual(invalid("inputs[0].parts[0]"));
    expect(ofExec({ inputs: [message([{ part: { case: "reasoning", value: { summary: [{}] } } }])] })).toEqual(
      invalid("inputs[0].parts[0].reasoning.summary[0]"),
    );
    expect(ofExec({ inputs: [message([{ part: { case: "toolResult", value: { content: [{}] } } }])] })).toEqual(
      invalid("inputs[0].parts[0].tool_result.content[0]"),
    );
  });

  it("has content that has a canonical form", () => {
    const refused: readonly (readonly [string, MessageInitShape<typeof MessageSchema>["parts"]])[] = [
      ["inputs[0].parts[0].text.text", [{ part: { case: "text", value: { text: "\ud800" } } }]],
      ["inputs[0].parts[0].file.mime", [{ part: { case: "file", value: { mime: "\udfff" } } }]],
      ["inputs[0].parts[0].file.uri", [{ part: { case: "file", value: { source: { case: "uri", value: "\udfff" } } } }]],
      ["inputs[0].parts[0].data.data", [{ part: { case: "data", value: { data: { deep: [1, { nan: Number.NaN }] } } } }]],
      ["inputs[0].parts[0].data.data", [{ part: { case: "data", value: { data: { infinite: Number.POSITIVE_INFINITY } } } }]],
      ["inputs[0].parts[0].data.data", [{ part: { case: "data", value: { data: { "\ud800": 1 } } } }]],
      ["inputs[0].parts[0].data.data", [{ part: { case: "data", value: { data: { text: ["\ud800"] } } } }]],
      ["inputs[0].parts[0].tool_call.args", [{ part: { case: "toolCall", value: { args: { a: Number.NEGATIVE_INFINITY } } } }]],
    ];
    for (const [field, parts] of refused) expect(ofExec({ inputs: [message(parts)] })).toEqual(invalid(field));
    const awkward = { nested: [null, { deeper: null }], minusZero: -0, large: 1e21, astral: "😀", control: "\u0000" };
    expect(ofExec({ inputs: [message([{ part: { case: "data", value: { data: awkward } } }])] })).toBeUndefined();
  });

  it("is not nested without end, in JSON or in parts", () => {
    const json = (depth: number): object => (depth === 0 ? {} : { in: json(depth - 1) });
    const withJson = (depth: number) => ofExec({ inputs: [message([{ part: { case: "data", value: { data: json(depth) as never } } }])] });
    expect(withJson(6)).toBeUndefined();
    expect(withJson(7)).toEqual(invalid("inputs[0].parts[0].data.data"));
    const part = (depth: number): MessageInitShape<typeof MessageSchema>["parts"] =>
      depth === 0
        ? [{ part: { case: "text", value: { text: "x" } } }]
        : [{ part: { case: "reasoning", value: { summary: part(depth - 1) as Part[] } } }];
    expect(ofExec({ inputs: [message(part(3))] })).toBeUndefined();
    expect(ofExec({ inputs: [message(part(4))] })?.code).toBe("invalid_argument");
  });

  it("has an expected head and a deadline that can be", () => {
    expect(ofExec({ expectedLastSeq: 0n })).toBeUndefined();
    expect(ofExec({ expectedLastSeq: -1n })).toEqual(invalid("expected_last_seq"));
    expect(ofExec({ expectedLastSeq: 9_007_199_254_740_992n })).toEqual(invalid("expected_last_seq"));
    expect(ofExec({ deadlineUnix: 253_402_300_799n })).toBeUndefined();
    expect(ofExec({ deadlineUnix: 253_402_300_800n })).toEqual(invalid("deadline_unix"));
    expect(ofExec({ deadlineUnix: -1n })).toEqual(invalid("deadline_unix"));
  });

  it("has a cursor that is the harness's own affair", () => {
    expect(ofExec({ resumeFromSeq: -9_223_372_036_854_775_808n })).toBeUndefined();
  });
});

describe("a Tail", () => {
  it("begins at a seq that can be and ends in one of three ways", () => {
    const tail = (request: MessageInitShape<typeof TailRequestSchema>) =>
      refusal(() => parseTail(create(TailRequestSchema, { session: "s", ...request })));
    expect(tail({ fromSeq: 0n })).toBeUndefined();
    expect(tail({ fromSeq: -1n })).toEqual(invalid("from_seq"));
    expect(tail({ until: 2 })).toBeUndefined();
    expect(tail({ until: 3 as never })).toEqual(invalid("until"));
    expect(tail({ session: "" })).toEqual(invalid("session"));
  });
});
