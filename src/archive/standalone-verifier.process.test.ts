import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { JournalStore } from "../journal/index.ts";
import { newKeyPair, nodeSignatures, signerOf } from "../node/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { exportedFile, verdictOn } from "../testing/archive-files.ts";
import { Family, familySteps } from "../testing/families.ts";
import { append, created, forked, forkRequest, output, uid } from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import { sampleEvents } from "../testing/sample-journal.ts";
import { parseTrustedKeys } from "./index.ts";

const VERIFIER = fileURLToPath(new URL("../../tools/verify/holdfast_verify.py", import.meta.url));

/** The machine's Python itself, not the launcher in front of it; "" where there is none that is new enough. */
const PROBE = "import sys; print(sys.executable if sys.version_info >= (3, 8) else '')";
const python = (spawnSync("python3", ["-c", PROBE], { encoding: "utf8" }).stdout ?? "").trim();
const why = python === "" ? " (skipped: there is no python3 of 3.8 or later on this machine)" : "";

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
});
