import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  EventKind,
  LogRecordSchema,
  type Event,
  type EventSchema,
  type LogRecord,
  type PartSchema,
} from "../gen/agentsessions/v1/common_pb.ts";
import { SessionSchema, DeltaSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { recordLine } from "./record-line.ts";
import { TurnPrinter } from "./turn-printer.ts";

type EventInit = Exclude<MessageInitShape<typeof EventSchema>, Event>;
type Body = NonNullable<EventInit["body"]>;

function record(seq: number, body: Body, kind: EventKind = EventKind.EVENT_OUTPUT): LogRecord {
  const event: EventInit = { executionId: "turn", kind, body };
  return create(LogRecordSchema, { seq: BigInt(seq), event });
}

const said = (seq: number, text: string): LogRecord =>
  record(seq, { case: "message", value: { role: "assistant", parts: [{ part: { case: "text", value: { text } } }] } });

describe("a record on a line", () => {
  it.each([
    [
      record(1, { case: "executionStart", value: { harness: "echo", harnessVersion: "1", inputCount: 1n } }),
      "    1  EXECUTION_START   echo 1  1 input",
    ],
    [
      record(
        2,
        { case: "message", value: { role: "user", parts: [{ part: { case: "text", value: { text: "hello" } } }] } },
        EventKind.EVENT_INPUT,
      ),
      "    2  INPUT             hello",
    ],
    [
      record(3, { case: "model", value: { model: "echo", inputHash: "2611c24a1a665dec" } }, EventKind.EVENT_MODEL_CALL),
      "    3  MODEL_CALL        echo  sha256 2611c24a…",
    ],
    [said(4, "echo:hello"), "    4  OUTPUT            echo:hello"],
    [
      record(5, { case: "usage", value: { model: "echo", inputTokens: 5n, outputTokens: 10n, reasoningTokens: 2n } }),
      "    5  USAGE             echo  5 in  10 out  2 reasoning",
    ],
    [
      record(6, { case: "tool", value: { tool: "read_file", id: "c1", args: { path: "a" } } }),
      '    6  TOOL_CALL         read_file  c1  {"path":"a"}',
    ],
    [record(7, { case: "result", value: { id: "c1", output: { text: "x" } } }), '    7  TOOL_RESULT       c1  {"text":"x"}'],
    [
      record(7, { case: "result", value: { id: "c1", content: [{ part: { case: "text", value: { text: "two\nlines" } } }] } }),
      "    7  TOOL_RESULT       c1  two\\nlines",
    ],
    [
      record(7, {
        case: "result",
        value: { id: "c1", output: { ok: true }, content: [{ part: { case: "text", value: { text: "done" } } }] },
      }),
      '    7  TOOL_RESULT       c1  done  {"ok":true}',
    ],
    [record(7, { case: "result", value: { id: "c1" } }), "    7  TOOL_RESULT       c1"],
    [record(8, { case: "result", value: { id: "c1", isError: true, error: "no" } }), "    8  TOOL_RESULT       c1  failed  no"],
    [
      record(8, {
        case: "result",
        value: { id: "c1", isError: true, error: "no\nway", content: [{ part: { case: "text", value: { text: "no\nway" } } }] },
      }),
      "    8  TOOL_RESULT       c1  failed  no\\nway",
    ],
    [
      record(8, {
        case: "result",
        value: { id: "c1", isError: true, error: "the tool failed", content: [{ part: { case: "text", value: { text: "no\nbrush" } } }] },
      }),
      "    8  TOOL_RESULT       c1  failed  the tool failed  no\\nbrush",
    ],
    [record(9, { case: "approval", value: { toolCallId: "c1", reason: "writes" } }), "    9  APPROVAL_REQUEST  c1  writes"],
    [record(10, { case: "approvalResult", value: { toolCallId: "c1", approved: true } }), "   10  APPROVAL_RESULT   c1  approved"],
    [record(11, { case: "lifecycle", value: { kind: 5, detail: "USER" } }), "   11  LIFECYCLE         CANCEL  USER"],
    [record(12, { case: "end", value: { state: "COMPLETED" } }), "   12  END               COMPLETED"],
    [
      record(13, { case: "end", value: { state: "FAILED", error: { code: 8, description: "over" } } }),
      "   13  END               FAILED  over",
    ],
    [record(14, { case: "error", value: { code: 14, description: "gone" } }), "   14  ERROR             UNAVAILABLE  gone"],
    [record(14, { case: "error", value: { code: 2, description: "gone" } }), "   14  ERROR             status 2  gone"],
    [create(LogRecordSchema, { seq: 15n }), "   15  UNKNOWN"],
    [record(1234567, { case: "end", value: { state: "CANCELED" } }), "1234567  END               CANCELED"],
  ])("%#", (given, line) => {
    expect(recordLine(given)).toBe(line);
  });

  it("indents further lines of a text under its first", () => {
    expect(recordLine(said(4, "one\ntwo"))).toBe("    4  OUTPUT            one\n                         two");
  });

  it("says who spoke when it was not the user, and marks what is no text", () => {
    const parts = [
      { part: { case: "text", value: { text: "see " } } },
      { part: { case: "file", value: { mime: "image/png" } } },
      { part: { case: "toolCall", value: { tool: "read_file" } } },
    ] satisfies MessageInitShape<typeof PartSchema>[];
    const message = { case: "message", value: { role: "system", parts } } satisfies Body;
    expect(recordLine(record(2, message, EventKind.EVENT_INPUT))).toBe(
      "    2  INPUT             system: see [file image/png][calls read_file]",
    );
  });

  it("lets no text move the cursor or pretend to be another line", () => {
    expect(recordLine(said(4, "\u001b[2J\u202ex\r"))).toBe("    4  OUTPUT            \\u001b[2J\\u202ex\\u000d");
    expect(recordLine(record(3, { case: "model", value: { model: "a\n    4  END" } }))).toContain("MODEL_CALL        a\\n    4  END");
  });
});

describe("a turn on a terminal", () => {
  const start = { kind: "session", session: create(SessionSchema, { lastSeq: 0n }) } as const;
  const delta = (chunk: string) => ({ kind: "delta", delta: create(DeltaSchema, { chunk }) }) as const;
  const of = (given: LogRecord) => ({ kind: "record", record: given }) as const;
  const model = of(record(3, { case: "model", value: { model: "m", inputHash: "0123456789" } }, EventKind.EVENT_MODEL_CALL));
  const modelLine = "    3  MODEL_CALL        m  sha256 01234567…\n";

  function printed(live: boolean, items: readonly Parameters<TurnPrinter["print"]>[0][]): string {
    let text = "";
    const printer = new TurnPrinter((more) => (text += more), { live });
    for (const item of items) printer.print(item);
    printer.close();
    return text;
  }

  it("shows an output as it is made, on its record's line, and once", () => {
    const items = [start, model, delta("hel"), delta("lo\nyou"), of(said(4, "hello\nyou"))];
    expect(printed(true, items)).toBe(`${modelLine}    4  OUTPUT            hello\n                         you\n`);
    expect(printed(true, items)).toBe(printed(false, items));
  });

  it("adds what the deltas did not have", () => {
    expect(printed(true, [start, model, delta("hel"), of(said(4, "hello"))])).toBe(`${modelLine}    4  OUTPUT            hello\n`);
  });

  it("says the record when the deltas were not what was recorded", () => {
    expect(printed(true, [start, model, delta("help"), of(said(4, "hello"))])).toBe(
      `${modelLine}    4  OUTPUT            help\n    4  OUTPUT            hello\n`,
    );
  });

  it("ends an open line before anything else: another record, a new connection, the end of the stream", () => {
    const error = of(record(4, { case: "error", value: { code: 14, description: "gone" } }));
    expect(printed(true, [start, model, delta("hel"), error])).toBe(
      `${modelLine}    4  OUTPUT            hel\n    4  ERROR             UNAVAILABLE  gone\n`,
    );
    expect(printed(true, [start, model, delta("hel"), start, of(said(4, "hello"))])).toBe(
      `${modelLine}    4  OUTPUT            hel\n    4  OUTPUT            hello\n`,
    );
    expect(printed(true, [start, model, delta("hel")])).toBe(`${modelLine}    4  OUTPUT            hel\n`);
  });
});
