import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { JSON_DEPTH_MAX, LINE_BYTES_MAX } from "../archive/index.ts";
import { HoldfastError } from "../base/errors.ts";
import { EventKind, EventSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { exportedFile } from "../testing/archive-files.ts";
import { created, uid } from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import { sampleEvents } from "../testing/sample-journal.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { verifyFile } from "./chain-file.ts";

/**
 * Files whose every hash is right for a reader that is lenient about form, and which say something else to another reader. Neither of the
 * verifiers may take one for intact, in whichever of the three forms it comes.
 */

const VERIFIER = fileURLToPath(new URL("../../tools/verify/holdfast_verify.py", import.meta.url));
const PROBE = "import sys; print(sys.executable if sys.version_info >= (3, 8) else '')";
const python = (spawnSync("python3", ["-c", PROBE], { encoding: "utf8" }).stdout ?? "").trim();

const FORMS = ["lines", "list", "export"] as const;
type Form = (typeof FORMS)[number];

/** An export whose records hold everything that is forged here. */
interface Sample {
  readonly before: readonly string[];
  readonly records: readonly string[];
  readonly after: readonly string[];
}

let folder: TemporaryFolder;
let sample: Sample;
beforeAll(async () => {
  folder = new TemporaryFolder();
  sample = await newSample();
});
afterAll(() => folder[Symbol.dispose]());

async function newSample(): Promise<Sample> {
  const journal = createMemoryStore({ clock: new VirtualClock(), digest: testDigest });
  const { fence } = await created(journal, "a", {});
  const bytes = { case: "bytes" as const, value: Uint8Array.of(0xfb, 0xff) };
  const odd = create(EventSchema, {
    kind: EventKind.EVENT_OUTPUT,
    body: {
      case: "message",
      value: { parts: [{ part: { case: "text", value: { text: "a\ufffdb" } } }, { part: { case: "file", value: { source: bytes } } }] },
    },
  });
  const events = [...sampleEvents(), odd].map((event) => ({ event }));
  await journal.append({ session: uid("a"), writer: { kind: "hold", fence }, events });
  const lines = (await exportedFile(journal, uid("a"))).toString().trimEnd().split("\n");
  const start = '{"kind":"record","session":"a","record":';
  return {
    before: lines.slice(
      0,
      lines.findIndex((line) => line.startsWith(start)),
    ),
    // No turn wrote these, so they have no fence; it is outside the hash.
    records: lines
      .filter((line) => line.startsWith(start))
      .map((line) => line.slice(start.length, -1).replace('"event":', '"fence":"2","event":')),
    after: lines.slice(lines.findLastIndex((line) => line.startsWith(start)) + 1),
  };
}

/** Records as a file. */
function fileOf(records: readonly string[], form: Form): Buffer {
  switch (form) {
    case "lines":
      return Buffer.from(`${records.join("\n")}\n`);
    case "list":
      return Buffer.from(`[\n${records.join(",\n")}\n]`);
    case "export": {
      const items = records.map((record) => `{"kind":"record","session":"a","record":${record}}`);
      return Buffer.from(`${[...sample.before, ...items, ...sample.after].join("\n")}\n`);
    }
  }
}

/** What is written otherwise, and how. The first place in the first record that has it is forged. */
const WRITTEN: Readonly<Record<string, readonly [from: string, to: string]>> = {
  "a key twice in the record": ['"seq":"1",', '"seq":"9","seq":"1",'],
  "a key twice that is written with an escape": ['"seq":"1",', '"s\\u0065q":"9","seq":"1",'],
  "a key twice in the event": ['"kind":"EVENT_OUTPUT"', '"kind":"EVENT_INPUT","kind":"EVENT_OUTPUT"'],
  "a key twice in a message": ['"role":"user"', '"role":"system","role":"user"'],
  "a key twice in a Struct": ['"days":2', '"days":3,"days":2'],
  "a camelCase name in the record": ['"content_hash"', '"contentHash"'],
  "a camelCase name in the event": ['"execution_id"', '"executionId"'],
  "a seq that is a number": ['"seq":"1"', '"seq":1'],
  "a seq with a zero in front": ['"seq":"1"', '"seq":"01"'],
  "a seq with an exponent": ['"seq":"10"', '"seq":"1e1"'],
  "a fence that is a number": ['"fence":"2"', '"fence":2'],
  "a fence with white space": ['"fence":"2"', '"fence":" 2"'],
  "a token count that is a number": ['"input_tokens":"12"', '"input_tokens":12'],
  "an int32 that is a text": ['"schema_version":1', '"schema_version":"1"'],
  "base64 for URLs": ['"+/8="', '"-_8="'],
  "base64 without padding": ['"+/8="', '"+/8"'],
  "base64 with other bits behind its end": ['"+/8="', '"+/9="'],
  "an enum by its number": ['"kind":"EVENT_INPUT"', '"kind":1'],
  "an enum by a name that has none": ['"kind":"EVENT_INPUT"', '"kind":"INPUT"'],
  "a null where a text is": ['"seq":"1",', '"seq":"1","prev_hash":null,'],
  "a null where a fence is": ['"fence":"2"', '"fence":null'],
  "a null where a message is": ['"role":"user"', '"role":"user","parts":null'],
  "a null in the event": ['"schema_version":1', '"schema_version":1,"usage":null'],
  "a default that should be left out": ['"is_error":true', '"is_error":true,"output_uri":""'],
  "a time with an offset": ['Z","', '+00:00","'],
  "a time with digits to spare": ['Z","', '000Z","'],
  "a time with a small letter": ['Z","', 'z","'],
  "a number that is rounded": ['"days":2', '"days":2.00000000000000001'],
  "a zero with a sign": ['"":0', '"":-0'],
  "a lone surrogate": ["\ufffd", "\\ud800"],
  "a field of nobody's": ['"seq":"1",', '"seq":"1","note":"x",'],
};

function forged([from, to]: readonly [string, string], form: Form): Buffer {
  const at = sample.records.findIndex((record) => record.includes(from));
  if (at < 0) throw new Error(`no record has ${from}`);
  return fileOf(
    sample.records.with(
      at,
      sample.records[at]!.replace(from, () => to),
    ),
    form,
  );
}

/** What is wrong with the bytes and not with what they are read as. */
const ENCODED: Readonly<Record<string, (file: Buffer) => Buffer>> = {
  "a byte that is no UTF-8": (file) => replaced(file, Buffer.from("\ufffd"), Buffer.of(0xff)),
  "a character in more bytes than it needs": (file) => replaced(file, Buffer.from('"seq"'), Buffer.of(0x22, 0x73, 0xc1, 0xa5, 0x71, 0x22)),
  "a byte order mark": (file) => Buffer.concat([Buffer.from("\ufeff"), file]),
  "a space that is none in JSON": (file) => replaced(file, Buffer.from("\n"), Buffer.from("\u00a0\n")),
};

function replaced(file: Buffer, from: Buffer, to: Buffer): Buffer {
  const at = file.indexOf(from);
  if (at < 0) throw new Error("the file does not have it");
  return Buffer.concat([file.subarray(0, at), to, file.subarray(at + from.length)]);
}

/** What ours says of a file. */
async function ours(path: string): Promise<string> {
  try {
    const found = await verifyFile(path, {}, new AbortController().signal);
    if (found.kind === "export") return found.verdict.isIntact ? "intact" : (found.verdict.faults[0]?.message ?? "");
    return found.verdict.kind === "intact" ? "intact" : found.verdict.fault.found;
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "invalid_argument") return error.message;
    throw error;
  }
}

/** What both say of files, by their names. */
async function verdictsOn(files: ReadonlyMap<string, Buffer>): Promise<{ readonly ours: string[]; readonly theirs: string[] }> {
  const paths = [...files.values()].map((file, index) => {
    const path = join(folder.path, `${index}`);
    writeFileSync(path, file);
    return path;
  });
  const verdicts: string[] = [];
  for (const path of paths) verdicts.push(await ours(path));
  const names = [...files.keys()];
  return { ours: namedIntact(names, verdicts), theirs: python === "" ? [] : namedIntact(names, standalone(paths)) };
}

function standalone(paths: readonly string[]): string[] {
  const done = spawnSync(python, [VERIFIER, "--json", ...paths], { encoding: "utf8", maxBuffer: 2 ** 28 });
  expect(done.stderr).toBe("");
  return done.stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly verdict: string }).verdict);
}

const namedIntact = (names: readonly string[], verdicts: readonly string[]): string[] => {
  expect(verdicts.length).toBe(names.length);
  return names.filter((_, index) => verdicts[index] === "intact");
};

describe(`a file in another form than the pinned one${python === "" ? " (without python3 of 3.8 or later, by ours alone)" : ""}`, () => {
  it("is intact as long as nothing is forged", async () => {
    const files = new Map(FORMS.map((form) => [form as string, fileOf(sample.records, form)]));
    const { ours: byOurs, theirs } = await verdictsOn(files);
    expect(byOurs).toEqual([...FORMS]);
    if (python !== "") expect(theirs).toEqual([...FORMS]);
    const spaced = sample.records.map((record) => ` \t${record.replaceAll(',"fence"', ' , "fence" ')} \r`);
    expect((await verdictsOn(new Map([["spaced", fileOf(spaced, "lines")]]))).ours).toEqual(["spaced"]);
  });

  it("is intact for neither verifier, however its records come", async () => {
    const files = new Map<string, Buffer>();
    for (const form of FORMS) {
      for (const [name, change] of Object.entries(WRITTEN)) files.set(`${form}: ${name}`, forged(change, form));
      for (const [name, change] of Object.entries(ENCODED)) files.set(`${form}: ${name}`, change(fileOf(sample.records, form)));
    }
    expect(await verdictsOn(files)).toEqual({ ours: [], theirs: [] });
    expect(files.size).toBe(FORMS.length * (Object.keys(WRITTEN).length + Object.keys(ENCODED).length));
  });

  it("is told with its place and what is wrong", async () => {
    const path = join(folder.path, "forged");
    const said = async (file: Buffer) => {
      writeFileSync(path, file);
      return ours(path);
    };
    expect(await said(forged(['"days":2', '"days":3,"days":2'], "lines"))).toMatch(/^line \d+ has a key twice$/);
    expect(await said(forged(['"days":2', '"days":3,"days":2'], "list"))).toBe("file has a key twice");
    expect(await said(forged(['"seq":"1"', '"seq":1'], "lines"))).toMatch(/^line 1 is wrong: record: must be written as exports write it/);
    expect(await said(forged(['"seq":"1"', '"seq":1'], "list"))).toMatch(/^record 1 is wrong: record: must be written as exports write it/);
    expect(await said(ENCODED["a byte that is no UTF-8"]!(fileOf(sample.records, "lines")))).toMatch(/^line \d+ is no UTF-8$/);
    expect(await said(Buffer.from('{"seq":"1"}\n'))).toBe("line 1 is wrong: record: must hold an event");
  });

  it("is refused before it takes memory or the stack, where it is too long or too deep", { timeout: 60_000 }, async () => {
    const deep = (levels: number): [string, string] => ['"days":2', `"days":${"[".repeat(levels)}${"]".repeat(levels)}`];
    const long = `"${"x".repeat(LINE_BYTES_MAX / 4)}`;
    const files = new Map<string, Buffer>();
    for (const form of FORMS) {
      files.set(`${form}: deep`, forged(deep(JSON_DEPTH_MAX), form));
      files.set(`${form}: very deep`, forged(deep(1_000_000), form));
      files.set(`${form}: text that is long, and a key twice`, forged(['"days":2', `"days":2,"x":${long}","x":1`], form));
      if (form !== "list") files.set(`${form}: a long line`, forged(['"days":2', `"days":2${" ".repeat(LINE_BYTES_MAX)}`], form));
    }
    expect(await verdictsOn(files)).toEqual({ ours: [], theirs: [] });
    const said: string[] = [];
    for (let index = 0; index < files.size; index++) said.push(await ours(join(folder.path, `${index}`)));
    const told = [/nested too deeply$/, /nested too deeply$/, /has a key twice$/, /takes more than \d+ bytes$/];
    const expected = [...told, ...told.slice(0, 3), ...told];
    expect(said).toEqual(expected.map((words) => expect.stringMatching(words) as string));
  });
});
