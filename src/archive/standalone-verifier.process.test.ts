import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Seq } from "../base/ids.ts";
import type { JournalStore, StoredRecord } from "../journal/index.ts";
import { newKeyPair, nodeSignatures, signerOf } from "../node/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { exportedFile, exportedItems, fileOf, verdictOn } from "../testing/archive-files.ts";
import { event as eventOf } from "../testing/events.ts";
import { Family, familySteps } from "../testing/families.ts";
import { append, created, forked, forkRequest, output, recordsOf, uid } from "../testing/journal-conformance/fixtures.ts";
import { SeededRandom, testDigest, VirtualClock } from "../testing/ports.ts";
import { chainOf, sampleEvents } from "../testing/sample-journal.ts";
import { parseTrustedKeys, type ArchiveItem } from "./index.ts";

const VERIFIER = fileURLToPath(new URL("../../tools/verify/holdfast_verify.py", import.meta.url));

/** The machine's Python itself, not the launcher in front of it; "" where there is none that is new enough. */
const PROBE = "import sys; print(sys.executable if sys.version_info >= (3, 8) else '')";
const python = (spawnSync("python3", ["-c", PROBE], { encoding: "utf8" }).stdout ?? "").trim();
const why = python === "" ? " (skipped: there is no python3 of 3.8 or later on this machine)" : "";

/** A device that is always full, which not every system has. */
const hasFull = existsSync("/dev/full");

interface Report {
  readonly verdict: "intact" | "broken" | "unreadable";
  readonly records: number;
  readonly reason?: string;
  readonly sessions?: readonly {
    readonly uid: string;
    readonly head: { readonly seq: number; readonly hash: string };
    readonly signed_by: string | null;
  }[];
  readonly faults: readonly { readonly kind: string; readonly session: string | null; readonly message: string }[];
}

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-verify-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Reports on exports, by one process. */
function reportsOn(files: readonly (Buffer | string)[], ...options: string[]): Report[] {
  const names = files.map((file, index) => {
    const name = join(folder, `${index}.jsonl`);
    writeFileSync(name, file);
    return name;
  });
  const done = spawnSync(python, [VERIFIER, "--json", ...options, ...names], { encoding: "utf8", maxBuffer: 2 ** 28 });
  expect(done.stderr).toBe("");
  return done.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Report);
}

const key = newKeyPair();
const signer = signerOf(key.privatePem, "key");
const trusted = parseTrustedKeys(key.publicPem, testDigest);

async function sample(): Promise<JournalStore> {
  const journal = createMemoryStore({ clock: new VirtualClock(), digest: testDigest });
  const { fence } = await created(journal, "a", { labels: { key: "value" }, name: "n", project: "p" });
  const events = sampleEvents().map((event, index) => ({ event, aside: index === 1 ? Uint8Array.of(1, 2) : undefined }));
  await journal.append({ session: uid("a"), writer: { kind: "hold", fence }, events });
  forked(await journal.fork(await forkRequest(journal, "a", 6, "b")));
  await append(journal, "b", output("b-eight"));
  return journal;
}

/** Ways to spoil one line of a file, each of which both verifiers must find. */
function* spoiled(file: string): Generator<[string, string]> {
  const lines = file.trimEnd().split("\n");
  for (const [index, line] of lines.entries()) {
    const { kind } = JSON.parse(line) as { kind: string };
    const without = (to: string) => [...lines.slice(0, index), to, ...lines.slice(index + 1)].filter((one) => one !== "").join("\n");
    // What is beside a record is covered by nothing.
    if (kind !== "aside") yield [`${kind} ${index} dropped`, without("")];
    yield [`${kind} ${index} doubled`, without(`${line}\n${line}`)];
    yield [`${kind} ${index} with more`, without(`${line.slice(0, -1)},"more":1}`)];
    yield [`${kind} ${index} cut`, without(line.slice(0, -5))];
    yield [`${kind} ${index} of another kind`, without(line.replace(`"kind":"${kind}"`, '"kind":"other"'))];
    yield [`file cut before ${index}`, lines.slice(0, index).join("\n")];
    if (kind === "record" || kind === "head") {
      for (const field of ["seq", "content_hash", "key_id", "time", "signature", "public_key", "session"]) {
        const changed = line.replace(new RegExp(`"${field}":"(.)`), (_, first: string) => `"${field}":"${first === "1" ? "2" : "1"}`);
        if (changed !== line) yield [`${kind} ${index} with another ${field}`, without(changed)];
      }
    }
  }
}

/** An export of one session that has these records, which no store takes for a session of its own. */
async function fileOfRecords(records: readonly StoredRecord[]): Promise<Buffer> {
  const lastSeq = records.length as Seq;
  const items = (await exportedItems(await sample(), uid("a"))).flatMap((item): ArchiveItem[] => {
    if (item.kind === "session") return [{ ...item, facts: { ...item.facts, lastSeq } }];
    if (item.kind === "head") {
      const head = { ...item.head, seq: BigInt(lastSeq), contentHash: records.at(-1)?.contentHash ?? "" };
      return [...records.map(({ bytes }) => ({ kind: "record" as const, session: uid("a"), bytes })), { ...item, head }];
    }
    return item.kind === "end" ? [{ ...item, records: lastSeq }] : item.kind === "header" ? [item] : [];
  });
  return fileOf(items, "lines");
}

/** An export of one session with the bytes of its records beside them. */
function withBytes(file: Buffer, records: readonly StoredRecord[]): string {
  let index = 0;
  const beside = (line: string): string => {
    const encoded = Buffer.from(records[index++]!.bytes).toString("base64");
    // Where the JSON alone does not give them, the bytes are there already.
    return "log_record" in (JSON.parse(line) as object) ? line : `${line.slice(0, -1)},"log_record":"${encoded}"}`;
  };
  const lines = file.toString().split("\n");
  return lines.map((line) => (line.startsWith('{"kind":"record"') ? beside(line) : line)).join("\n");
}

/** Bytes that may be read otherwise, or not at all, or still the same. */
function spoiledBytes(random: SeededRandom, bytes: Uint8Array, other: Uint8Array): Uint8Array {
  const at = random.below(bytes.length);
  switch (random.below(8)) {
    case 0:
    case 1:
      return bytes.with(at, bytes[at]! ^ (1 << random.below(8)));
    case 2:
      return Uint8Array.from([...bytes.subarray(0, at), ...bytes.subarray(at + 1)]);
    case 3:
      return Uint8Array.from([...bytes.subarray(0, at), random.below(256), ...bytes.subarray(at)]);
    case 4:
      return bytes.subarray(0, at);
    case 5:
      return Uint8Array.from([...bytes, ...other]);
    case 6:
      return Uint8Array.from([...bytes, ...bytes]);
    default:
      // Its seq, which is the first field and a small number, behind everything else.
      return Uint8Array.from([...bytes.subarray(2), ...bytes.subarray(0, 2)]);
  }
}

describe.skipIf(python === "")(`the standalone verifier on exports${why}`, () => {
  it("agrees with ours on whatever a family has become", { timeout: 120_000 }, async () => {
    const files: Buffer[] = [];
    for (const steps of fc.sample(familySteps, 40)) {
      const family = new Family(createMemoryStore({ clock: new VirtualClock(), digest: testDigest }));
      await family.live(steps);
      for (const session of family.living.slice(0, 2)) files.push(await exportedFile(family.journal, session, { family: true, signer }));
    }
    const reports = reportsOn(files);
    expect(reports.length).toBe(files.length);
    for (const [index, report] of reports.entries()) {
      const ours = verdictOn(files[index]!, { signatures: nodeSignatures });
      expect([report.verdict, report.faults]).toEqual(["intact", []]);
      expect(report.records).toBe(ours.records);
      expect(report.sessions?.map(({ uid: session, head }) => [session, head.seq, head.hash])).toEqual(
        ours.sessions.map(({ facts, head }) => [facts.seed.uid, head?.seq, head?.hash]),
      );
    }
  });

  it("finds what was spoiled, as ours does", { timeout: 120_000 }, async () => {
    const file = (await exportedFile(await sample(), uid("a"), { family: true, signer })).toString();
    writeFileSync(join(folder, "keys"), key.publicPem);
    expect(reportsOn([file], "--trusted-keys", join(folder, "keys"))[0]).toMatchObject({ verdict: "intact", faults: [] });
    const cases = [...spoiled(file)];
    expect(cases.length).toBeGreaterThan(150);
    const reports = reportsOn(
      cases.map(([, spoiledFile]) => spoiledFile),
      "--trusted-keys",
      join(folder, "keys"),
    );
    for (const [index, [name, spoiledFile]] of cases.entries()) {
      const ours = verdictOn(Buffer.from(spoiledFile), { signatures: nodeSignatures, trusted });
      expect([name, ours.isIntact, reports[index]?.verdict === "intact"]).toEqual([name, false, false]);
    }
  });

  it("names what is wrong with a head by the same word", async () => {
    const items = (await exportedFile(await sample(), uid("a"), { signer })).toString().trimEnd().split("\n");
    const change = (kind: string, to: (line: string) => string) =>
      items.map((line) => (line.startsWith(`{"kind":"${kind}"`) ? to(line) : line)).join("\n");
    const others = newKeyPair();
    writeFileSync(join(folder, "keys"), key.publicPem);
    const cases: Readonly<Record<string, Buffer | string>> = {
      unsigned: change("head", (line) => line.replace(/,"time".*/, "}")),
      forged: change("head", (line) => line.replace('"signature":"', '"signature":"AAAA')),
      outdated: change("head", (line) => line.replace('"seq":"14"', '"seq":"13"')),
      rebuilt: change("head", (line) => line.replace(/"content_hash":"../, '"content_hash":"00')),
      truncated: change("head", (line) => line.replace('"seq":"14"', '"seq":"15"')),
      untrusted: await exportedFile(await sample(), uid("a"), { signer: signerOf(others.privatePem, "key") }),
    };
    const reports = reportsOn(Object.values(cases), "--trusted-keys", join(folder, "keys"));
    for (const [index, kind] of Object.keys(cases).entries()) {
      const ours = verdictOn(Buffer.from(Object.values(cases)[index]!), { signatures: nodeSignatures, trusted });
      expect(reports[index]?.faults.map((fault) => fault.kind)).toEqual(ours.faults.map((fault) => fault.kind));
      expect(reports[index]?.faults[0]?.kind).toBe(kind);
    }
  });

  it("reads the bytes beside a record as ours does, whatever the record holds", { timeout: 120_000 }, async () => {
    const records = chainOf(fc.sample(eventOf({ scope: "recordable" }), { seed: 71, numRuns: 600 }));
    const file = withBytes(await fileOfRecords(records), records);
    expect(verdictOn(Buffer.from(file), { signatures: nodeSignatures }).faults).toEqual([]);
    expect(reportsOn([file])[0]).toMatchObject({ verdict: "intact", records: 600, faults: [] });
  });

  it("refuses bytes beside a record that say something else, as ours does", { timeout: 120_000 }, async () => {
    const journal = await sample();
    const records = await recordsOf(journal, "a");
    const file = await exportedFile(journal, uid("a"));
    const random = new SeededRandom(72);
    const files = Array.from({ length: 1_200 }, () => {
      const index = random.below(records.length);
      const bytes = spoiledBytes(random, records[index]!.bytes, records[random.below(records.length)]!.bytes);
      return withBytes(file, records.with(index, { ...records[index]!, bytes }));
    });
    const ours = files.map((one) => verdictOn(Buffer.from(one), { signatures: nodeSignatures }).isIntact);
    expect(reportsOn(files).map(({ verdict }) => verdict === "intact")).toEqual(ours);
    // Both answers occur: the same fields in another order, or twice, say the same.
    expect(ours.filter((isIntact) => isIntact).length).toBeGreaterThan(50);
    expect(ours.filter((isIntact) => !isIntact).length).toBeGreaterThan(800);
  });

  it.each([
    ["null", "null"],
    ["empty", '""'],
    ["without padding", '"CAE"'],
    ["of the alphabet for URLs", '"CAE_"'],
    ["a number", "1"],
  ])("refuses bytes beside a record that are %s, as ours does", async (_, written) => {
    const file = (await exportedFile(await sample(), uid("a")))
      .toString()
      .replace(/("kind":"record".*)\}\n/, `$1,"log_record":${written}}\n`);
    expect(file).toContain('"log_record"');
    expect(verdictOn(Buffer.from(file), { signatures: nodeSignatures }).isIntact).toBe(false);
    expect(reportsOn([file])[0]?.verdict).toBe("broken");
  });

  it("refuses what no hash covers where ours refuses it", async () => {
    const file = (await exportedFile(await sample(), uid("a"))).toString();
    const spoil: readonly [string | RegExp, string][] = [
      [/"uid":"a"/g, `"uid":"${"x".repeat(129)}"`],
      [/"uid":"a"/g, '"uid":"a\\u0007"'],
      [/"create_time":"[^"]*"/, '"name":"other"'],
      [/("create_time":"[^"Z.]*)[^"]*"/, '$1.123456Z"'],
      [/"last_seq":"14"/, '"last_seq":"-1"'],
      [/"event":/, '"fence":"-1","event":'],
      [/"event":/, '"fence":"9007199254740992","event":'],
    ];
    const files = spoil.map(([from, to]) => file.replace(from, to));
    for (const one of files) expect(one).not.toBe(file);
    expect(files.map((one) => verdictOn(Buffer.from(one), { signatures: nodeSignatures }).isIntact)).toEqual(spoil.map(() => false));
    expect(reportsOn(files).map(({ verdict }) => verdict)).toEqual(spoil.map(() => "broken"));
  });

  it("checks Ed25519 as the platform does", async () => {
    const program = `
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("v", sys.argv[1]); v = importlib.util.module_from_spec(spec); spec.loader.exec_module(v)
print(json.dumps([v.is_signature(*map(bytes.fromhex, row)) for row in json.load(sys.stdin)]))`;
    const rows: [Uint8Array, Uint8Array, Uint8Array][] = [];
    for (const data of fc.sample(fc.uint8Array({ maxLength: 200 }), 12)) {
      const { publicKey, sign } = signerOf(newKeyPair().privatePem, "key");
      const signature = await sign(data);
      rows.push([publicKey, data, signature], [publicKey, Uint8Array.of(...data, 0), signature]);
      for (const at of [0, 31, 32, 63]) rows.push([publicKey, data, signature.with(at, (signature[at] ?? 0) ^ 0x10)]);
      for (const at of [11, 12, 43]) rows.push([publicKey.with(at, (publicKey[at] ?? 0) ^ 0x40), data, signature]);
      rows.push([publicKey, data, signature.subarray(1)], [publicKey.subarray(1), data, signature], [publicKey, data, new Uint8Array(64)]);
    }
    const input = JSON.stringify(rows.map((row) => row.map((bytes) => Buffer.from(bytes).toString("hex"))));
    const done = spawnSync(python, ["-c", program, VERIFIER], { input, encoding: "utf8" });
    const ours = rows.map(([publicKey, data, signature]) => nodeSignatures.isSignature(publicKey, data, signature));
    expect(JSON.parse(done.stdout)).toEqual(ours);
    expect(ours.filter((isRight) => isRight).length).toBe(12);
  });

  it("says its verdict in lines, and what it cannot do with a journal alone", async () => {
    const file = join(folder, "one.jsonl");
    writeFileSync(file, await exportedFile(await sample(), uid("b"), { signer }));
    const run = (...args: string[]) => spawnSync(python, [VERIFIER, ...args], { encoding: "utf8" });
    const said = run(file);
    expect([said.status, said.stdout]).toEqual([
      0,
      expect.stringMatching(
        /intact: 8 records in 2 sessions\n {2}a: prefix 6 [0-9a-f]{64}\n {2}b: head 8 [0-9a-f]{64}, signed by [0-9a-f]{16}\n$/,
      ),
    ]);
    expect(run("--head-seq", "8", file)).toMatchObject({ status: 2 });
    writeFileSync(join(folder, "wrong"), "hello");
    expect(run("--trusted-keys", join(folder, "wrong"), file)).toMatchObject({ status: 2, stdout: "" });
    writeFileSync(join(folder, "alone"), '{"seq":"1"}\n');
    expect(run("--trusted-keys", join(folder, "keys"), join(folder, "alone")).status).toBe(2);
  });

  it.skipIf(!hasFull).each([
    ["> /dev/full", "No space left on device"],
    [">&-", "it is closed"],
    ["--help > /dev/full", "No space left on device"],
    ["--json > /dev/full", "No space left on device"],
  ])("says in one line, with status 2, that its verdict cannot be written: %s", async (redirected, reason) => {
    const file = join(folder, "one.jsonl");
    writeFileSync(file, await exportedFile(await sample(), uid("a")));
    for (const unbuffered of ["", "1"]) {
      const done = spawnSync("sh", ["-c", `exec "$0" "$1" "$2" ${redirected}`, python, VERIFIER, file], {
        encoding: "utf8",
        env: { ...process.env, PYTHONUNBUFFERED: unbuffered },
      });
      expect(done).toMatchObject({ status: 2, stdout: "", stderr: `holdfast_verify.py: standard output cannot be written: ${reason}\n` });
    }
  });

  it.skipIf(!hasFull)("has a status of 2, and no traceback, for streams that are closed or lead nowhere", async () => {
    const file = join(folder, "one.jsonl");
    writeFileSync(file, await exportedFile(await sample(), uid("a")));
    const status = (command: string) => {
      const done = spawnSync("sh", ["-c", `exec "$0" "$1" ${command}`, python, VERIFIER, file], { encoding: "utf8" });
      expect(done.stderr).not.toContain("Traceback");
      return [done.status, done.stdout];
    };
    expect(status("- <&-")).toEqual([2, "standard input: UNREADABLE: it is closed\n"]);
    expect(status('"$2" > /dev/full 2>&1')).toEqual([2, ""]);
    expect(status('"$2" >&- 2>&-')).toEqual([2, ""]);
    for (const nowhere of ["2>&-", "2> /dev/full"]) expect(status(`--nonsense ${nowhere}`)).toEqual([2, ""]);
    // What is wrong with standard error alone does not change a verdict.
    for (const nowhere of ["2>&-", "2> /dev/full"]) expect(status(`${file} ${nowhere}`)[0]).toBe(0);
    const reader = spawnSync("sh", ["-c", `{ "$0" "$1" "$2"; echo "$?" >&2; } | true`, python, VERIFIER, file], { encoding: "utf8" });
    expect(reader.stderr).not.toContain("Traceback");
  });
});
