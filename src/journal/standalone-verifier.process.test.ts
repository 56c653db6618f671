import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { event } from "../testing/events.ts";
import { chainOf, exported, sampleEvents } from "../testing/sample-journal.ts";
import { chainTamperings, fieldTamperings, rehashed, truncations } from "../testing/tampering.ts";

const VERIFIER = fileURLToPath(new URL("../../tools/verify/holdfast_verify.py", import.meta.url));
const HELLO = fileURLToPath(new URL("../canon/vectors/journal-hello.json", import.meta.url));

/** The machine's Python itself, not the launcher in front of it; "" where there is none that is new enough. */
const PROBE = "import sys; print(sys.executable if sys.version_info >= (3, 8) else '')";
const python = (spawnSync("python3", ["-c", PROBE], { encoding: "utf8" }).stdout ?? "").trim();
const hasPython = python !== "";
const why = hasPython ? "" : " (skipped: there is no python3 of 3.8 or later on this machine)";

interface Fault {
  readonly record: number;
  readonly seq: number;
  readonly kind: string;
  readonly expected: string;
  readonly found: string;
}
interface Report {
  readonly file: string;
  readonly verdict: "intact" | "broken" | "unreadable";
  readonly records: number;
  readonly head?: { readonly seq: number; readonly hash: string };
  readonly reason?: string;
  readonly faults: readonly Fault[];
}

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-verify-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(args: readonly string[], input = ""): { status: number | null; out: string; error: string } {
  const done = spawnSync(python, [VERIFIER, ...args], { input, encoding: "utf8", maxBuffer: 2 ** 28 });
  return { status: done.status, out: done.stdout, error: done.stderr };
}

/** The report on one journal, given as its text. */
function reportOn(text: string, ...options: string[]): Report & { readonly status: number | null } {
  const { status, out, error } = run(["--json", ...options, "-"], text);
  expect(error).toBe("");
  return { ...(JSON.parse(out) as Report), status };
}

/** Reports on many journals, by one process for a few hundred of them. */
function reportsOn(texts: readonly string[]): Report[] {
  const reports: Report[] = [];
  for (let start = 0; start < texts.length; start += 500) {
    const files = texts.slice(start, start + 500).map((text, index) => {
      const file = join(folder, `${index}.jsonl`);
      writeFileSync(file, text);
      return file;
    });
    const { out, error } = run(["--json", ...files]);
    expect(error).toBe("");
    reports.push(
      ...out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Report),
    );
  }
  return reports;
}

const lines = (records: readonly JsonObject[]): string => records.map((record) => `${JSON.stringify(record)}\n`).join("");
const kinds = (report: Report): string[] => report.faults.map(({ kind }) => kind);

const chain = chainOf(sampleEvents());
const sample = exported(chain);
const head = { seq: chain.length, hash: chain.at(-1)!.contentHash };

/** What the verifier says of journals of one record, whose hash is right whatever the event. */
function verdicts(events: readonly JsonObject[]): [JsonObject, string, string[]][] {
  const reports = reportsOn(events.map((held) => lines([rehashed({ seq: "1", event: held })])));
  return events.map((held, index) => [held, reports[index]!.verdict, kinds(reports[index]!)]);
}

/** The names of those journals that the verifier calls intact. */
function calledIntact(journals: Iterable<{ readonly name: string; readonly text: string }>): { intact: string[]; count: number } {
  const all = [...journals];
  const reports = reportsOn(all.map(({ text }) => text));
  return { intact: all.filter((_, index) => reports[index]?.verdict === "intact").map(({ name }) => name), count: reports.length };
}

describe.skipIf(!hasPython)(`the standalone verifier on an intact journal${why}`, () => {
  it("accepts another implementation's journal", () => {
    expect(run([HELLO])).toEqual({
      status: 0,
      out: `${HELLO}: intact: 4 records, head 4 1b0f72670340a5c139b39a2922bca9fa202e191a4d610f2211f53a501f3ab5fa\n`,
      error: "",
    });
  });

  it("accepts JSON lines, a list, an object with records, from a file or from standard input", () => {
    const texts = [
      lines(sample),
      JSON.stringify(sample, null, 2),
      JSON.stringify({ about: "a journal", records: sample }),
      lines(sample).trimEnd(),
    ];
    for (const text of texts) expect(reportOn(text)).toMatchObject({ status: 0, verdict: "intact", records: 14, head, faults: [] });
    expect(reportsOn(texts).map(({ verdict }) => verdict)).toEqual(["intact", "intact", "intact", "intact"]);
    expect(reportOn(JSON.stringify(sample[0]))).toMatchObject({ status: 0, records: 1 });
  });

  it("accepts a chain of any events that were recorded: its canonical form is ours", () => {
    const events = fc.sample(event({ scope: "recordable" }), { seed: 61, numRuns: 3000 });
    const records = exported(chainOf(events));
    expect(reportOn(lines(records))).toMatchObject({ status: 0, verdict: "intact", records: 3000 });
  });

  it("accepts numbers as other writers print them, where they are the same numbers", () => {
    const text = lines(exported(chainOf(sampleEvents().slice(4, 5))));
    expect(text).toContain('"days":2,');
    for (const same of ["2.0", "2e0", "0.2E1", "2.000"])
      expect(reportOn(text.replace('"days":2,', `"days":${same},`)).verdict).toBe("intact");
  });

  it("accepts the first record's empty prev_hash written or left out, and a child that begins with its parent's records", () => {
    expect(reportOn(lines([{ prev_hash: "", ...sample[0] }])).verdict).toBe("intact");
    const child = chainOf([...sampleEvents().slice(0, 3), ...sampleEvents().slice(6, 7)]);
    expect(child[2]!.contentHash).toBe(chain[2]!.contentHash);
    expect(reportOn(lines(exported(child))).verdict).toBe("intact");
  });

  it("says nothing of the fence, which is outside the hash", () => {
    expect(reportOn(lines(sample.with(3, { ...sample[3], fence: "99" }))).verdict).toBe("intact");
  });
});

describe.skipIf(!hasPython)(`the standalone verifier on a journal that was tampered with${why}`, () => {
  it("finds every change of every field of every record", { timeout: 240_000 }, () => {
    const journals = [...fieldTamperings(sample)].map(({ name, records }) => ({ name, text: lines(records) }));
    const { intact, count } = calledIntact(journals);
    expect(intact).toEqual([]);
    expect(count).toBeGreaterThan(3000);
  });

  it("finds every record that is missing, doubled, moved, forged, or hashed again without its successors", () => {
    const journals = [...chainTamperings(sample)].map(({ name, records }) => ({ name, text: lines(records) }));
    const { intact, count } = calledIntact(journals);
    expect(intact).toEqual([]);
    expect(count).toBeGreaterThan(90);
  });

  it("finds a key that occurs twice, in any object of any record, whichever of both a reader would take", () => {
    const { intact, count } = calledIntact(doubledKeys());
    expect(intact).toEqual([]);
    expect(count).toBeGreaterThan(400);
  });

  it("finds what ends too early or too late, once its head is given", () => {
    const options = ["--head-seq", `${head.seq}`, "--head-hash", head.hash];
    expect(reportOn(lines(sample), ...options).verdict).toBe("intact");
    const shorter = [...truncations(sample)].map(({ records }) => lines(records));
    expect(reportsOn(shorter).map(({ verdict }) => verdict)).toEqual(shorter.map(() => "intact"));
    for (const text of shorter) expect(kinds(reportOn(text, ...options))).toEqual(["head", "head"]);
    expect(kinds(reportOn(shorter[0]!, "--head-seq", "14"))).toEqual(["head"]);
    expect(kinds(reportOn(shorter[0]!, "--head-hash", head.hash))).toEqual(["head"]);
    expect(kinds(reportOn(lines(sample), "--head-seq", "13"))).toEqual(["head"]);
    expect(reportOn("", ...options)).toMatchObject({ status: 1, verdict: "broken" });
    const forged = sample.with(13, rehashed({ ...sample[13], event: { end: { state: "COMPLETED" } } }));
    expect(reportOn(lines(forged)).verdict).toBe("intact");
    expect(reportOn(lines(forged), ...options)).toMatchObject({ status: 1, faults: [{ kind: "head", expected: head.hash }] });
  });

  it.each([
    ["rounded when it is read", '"days":2,', '"days":2.00000000000000001,'],
    ["rounded to an integer", '"days":2,', '"days":9007199254740993,'],
    ["too large", '"days":2,', '"days":1e999,'],
    ["too small", '"days":2,', '"days":1e-999999999999999999999,'],
    ["a zero with a sign", '"":0', '"":-0'],
  ])("refuses a number that is %s", (_, from, to) => {
    const text = lines(exported(chainOf(sampleEvents().slice(4, 5))));
    expect(text).toContain(from);
    expect(reportOn(text.replace(from, to))).toMatchObject({ status: 1, faults: [{ record: 1, kind: "unreadable" }] });
  });

  it("refuses what is not in the pinned form even where its hash is right", () => {
    const wrong: JsonObject[] = [
      { executionId: "e" },
      { execution_id: "" },
      { schema_version: 0 },
      { schema_version: "1" },
      { kind: 1 },
      { kind: "INPUT" },
      { ts: "2026-01-01T00:00:00.100000Z" },
      { ts: "2026-02-29T00:00:00Z" },
      { ts: "2026-01-01T00:00:00+00:00" },
      { usage: { input_tokens: 5 } },
      { usage: { input_tokens: "05" } },
      { usage: { input_tokens: "9223372036854775808" } },
      { result: { is_error: false } },
      { message: { parts: [] } },
      { message: { parts: [{ text: {}, data: {} }] } },
      { message: { role: "user" }, end: {} },
      { message: { parts: [{ file: { bytes: "AA" } }] } },
      { message: { parts: [{ file: { bytes: "_-==" } }] } },
      { message: { parts: [{ file: { bytes: "", uri: "" } }] } },
      { execution_start: { config: "" } },
      { model: { params: {} } },
      { tool: { args: [] } },
      { actor: null },
    ];
    expect(verdicts(wrong)).toEqual(wrong.map((form) => [form, "broken", ["unreadable"]]));
    const right: JsonObject[] = [
      {},
      { actor: {} },
      { kind: 99 },
      { message: { parts: [{}, { file: { bytes: "" } }] } },
      { execution_start: { input_count: "0" } },
    ];
    expect(verdicts(right)).toEqual(right.map((form) => [form, "intact", []]));
  });

  it("refuses a lone surrogate and takes a whole pair, however it is escaped", () => {
    const text = lines(exported(chainOf(sampleEvents().slice(1, 2))));
    expect(text).toContain("\u{1f600}");
    expect(reportOn(text.replace("\u{1f600}", "\\ud83d\\ude00")).verdict).toBe("intact");
    expect(reportOn(text.replace("\u{1f600}", "\\ud83d"))).toMatchObject({ faults: [{ kind: "unreadable" }] });
  });

  it("names the record and the way in which it fails, and goes on after it", () => {
    const broken = sample.toSpliced(5, 1).with(1, { ...sample[1]!, content_hash: "0" });
    const { status, out } = run(["-"], lines(broken));
    expect(status).toBe(1);
    expect(out.split("\n").map((line) => line.replace(/[0-9a-f]{64}/g, "HASH"))).toEqual([
      "standard input: BROKEN: 4 faults",
      "  record 2 (seq 2): content-hash: expected HASH, found 0",
      "  record 3 (seq 3): prev-hash: expected 0, found HASH",
      "  record 6 (seq 6): seq: expected 6, found 7",
      "  record 6 (seq 6): prev-hash: expected HASH, found HASH",
      "",
    ]);
  });

  it("shows nothing of a journal to a terminal that could be an instruction for it", () => {
    const { out } = run(["-"], lines([{ ...sample[0], content_hash: `\u001b[2J${"x".repeat(5000)}` }]));
    expect(out).toContain("found \\u001b[2Jxxx");
    expect(out.length).toBeLessThan(500);
  });
});

describe.skipIf(!hasPython)(`the standalone verifier on what is no journal${why}`, () => {
  it.each([
    ["nothing", ""],
    ["no JSON", "hello"],
    ["a line that is cut off", `${lines(sample.slice(0, 2))}{"seq":"3"`],
    ["a number", "7"],
    ["an object with its records twice", '{"records":[],"records":[]}'],
    ["NaN", '{"seq":"1","event":{"tool":{"args":{"n":NaN}}}}'],
    ["a raw control character in a string", '{"seq":"1","event":{"execution_id":"a\u0001"}}'],
    ["JSON that is nested too deeply", `{"seq":"1","event":{"tool":{"args":{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}}}}`],
  ])("exits with 2 for %s", (_, text) => {
    expect(reportOn(text)).toMatchObject({ status: 2, verdict: "unreadable" });
  });

  it("exits with 2 for a file that is not there, for text that is no UTF-8, and for a wrong command line", () => {
    expect(run([join(folder, "missing")]).status).toBe(2);
    const latin = join(folder, "latin1");
    writeFileSync(latin, Buffer.from([0x7b, 0xe9, 0x7d]));
    expect(run([latin])).toMatchObject({ status: 2, out: `${latin}: UNREADABLE: it is no UTF-8\n` });
    expect(run([]).status).toBe(2);
    expect(run(["--head-seq", "4", HELLO, HELLO]).status).toBe(2);
  });

  it("exits with the worst of what it found in several files", () => {
    const broken = join(folder, "broken.jsonl");
    writeFileSync(broken, lines(sample.slice(1)));
    expect(run([HELLO, HELLO]).status).toBe(0);
    expect(run([HELLO, broken]).status).toBe(1);
    expect(run([HELLO, broken, join(folder, "missing")]).status).toBe(2);
  });
});

/** Every record with one key of one of its objects written twice: the right value first, then another, and the other way round. */
function* doubledKeys(): Generator<{ readonly name: string; readonly text: string }> {
  for (const [index, record] of sample.entries()) {
    const line = JSON.stringify(record);
    for (const [start, end] of membersOf(line)) {
      const member = line.slice(start, end);
      const other = `${member.slice(0, member.indexOf(":") + 1)}"other"`;
      for (const doubled of [`${other},${member}`, `${member},${other}`, `${member},${member}`]) {
        const text = line.slice(0, start) + doubled + line.slice(end);
        yield {
          name: `record ${index + 1}: ${doubled.slice(0, 60)}`,
          text: lines(sample.slice(0, index)) + `${text}\n` + lines(sample.slice(index + 1)),
        };
      }
    }
  }
}

/** Where each member of each object of a line of JSON begins and ends. */
function membersOf(line: string): [start: number, end: number][] {
  const members: [number, number][] = [];
  const open: { readonly object: boolean; start: number }[] = [];
  const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;
  const close = (end: number): void => {
    const top = open.at(-1);
    if (top?.object === true && top.start < end) members.push([top.start, end]);
  };
  for (let match = tokens.exec(line); match !== null; match = tokens.exec(line)) {
    const [token] = match;
    if (token === "{" || token === "[") open.push({ object: token === "{", start: match.index + 1 });
    if (token === "," || token === "}" || token === "]") close(match.index);
    if (token === "}" || token === "]") open.pop();
    const top = open.at(-1);
    if (token === "," && top !== undefined) top.start = match.index + 1;
  }
  return members;
}

describe.skipIf(!hasPython)(`the standalone verifier${why}`, () => {
  it("needs nothing but Python's standard library", () => {
    const imports = readFileSync(VERIFIER, "utf8").match(/^(?:import|from) (\w+)/gm);
    expect(imports?.map((line) => line.split(" ")[1])).toEqual([
      "argparse",
      "base64",
      "binascii",
      "calendar",
      "hashlib",
      "json",
      "re",
      "sys",
      "decimal",
    ]);
    expect(spawnSync(python, ["-I", "-S", VERIFIER, HELLO]).status).toBe(0);
  });
});
