import { describe, expect, it } from "vitest";
import { toJson, type JsonObject } from "@bufbuild/protobuf";
import type { SessionUid, Signer } from "../base/index.ts";
import { canonicalEvent, decodeLogRecord } from "../canon/index.ts";
import { LogRecordSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { SignedHeadSchema, type SignedHead } from "../gen/holdfast/v1/export_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import { newKeyPair, nodeSignatures, signerOf } from "../node/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { exportedFile, exportedItems, fileOf, itemsOf, verdictOn } from "../testing/archive-files.ts";
import { append, created, end, executionStart, forked, forkRequest, output, uid } from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import { sampleEvents } from "../testing/sample-journal.ts";
import { chainTamperings, fieldTamperings, rehashed } from "../testing/tampering.ts";
import { fingerprintOf, parseTrustedKeys, signHead, type ArchiveItem } from "./index.ts";

const signatures = nodeSignatures;
const key = newKeyPair();
const signer = signerOf(key.privatePem, "key");
const trusted = parseTrustedKeys(key.publicPem, testDigest);

/** A session `a` with every kind of event, of which `b` shares six records, with something beside the second. */
async function sample(): Promise<JournalStore> {
  const journal = createMemoryStore({ clock: new VirtualClock(), digest: testDigest });
  const { fence } = await created(journal, "a", { labels: { key: "value" } });
  const events = sampleEvents().map((event, index) => ({ event, aside: index === 1 ? Uint8Array.of(1, 2) : undefined }));
  await journal.append({ session: uid("a"), writer: { kind: "hold", fence }, events });
  forked(await journal.fork(await forkRequest(journal, "a", 6, "b")));
  await append(journal, "b", output("b-eight"));
  return journal;
}

const family = async (by?: Signer) => exportedItems(await sample(), uid("a"), { family: true, signer: by });
const kindsOf = (items: readonly ArchiveItem[], options = {}): string[] => faultsOf(fileOf(items, "lines"), options);

function faultsOf(file: Uint8Array, options = {}): string[] {
  return verdictOn(file, { signatures, ...options }).faults.map(({ kind, session, message }) => `${kind} ${session ?? "file"}: ${message}`);
}

/** The items with some of them changed. */
function changed(items: readonly ArchiveItem[], change: (item: ArchiveItem, index: number) => readonly ArchiveItem[]): ArchiveItem[] {
  return items.flatMap(change);
}

function withHead(items: readonly ArchiveItem[], session: string, change: (head: SignedHead) => SignedHead): ArchiveItem[] {
  return changed(items, (item) =>
    item.kind === "head" && item.head.session === session ? [{ kind: "head", head: change(item.head) }] : [item],
  );
}

/** A record in JSON, as an item. */
function recordItem(session: string, record: JsonObject): ArchiveItem {
  const [item] = itemsOf(Buffer.from(`${JSON.stringify({ kind: "record", session, record })}\n`));
  if (item === undefined) throw new Error("a line is an item");
  return item;
}

const jsonOf = (bytes: Uint8Array): JsonObject =>
  toJson(LogRecordSchema, decodeLogRecord(bytes), { useProtoFieldName: true }) as JsonObject;

describe("a sound export", () => {
  it("verifies: every session with its records, its head and who vouches for it", async () => {
    for (const form of ["lines", "binary"] as const) {
      const { isIntact, records, sessions } = verdictOn(fileOf(await family(signer), form), { signatures, trusted });
      expect([isIntact, records]).toEqual([true, 16]);
      const words = sessions.map((session) => [
        session.facts.seed.uid,
        session.records,
        session.head?.seq,
        session.trust.kind,
        session.isIntact,
      ]);
      expect(words).toEqual([
        ["a", 14, 14, "signed", true],
        ["b", 2, 8, "signed", true],
      ]);
      const fingerprint = fingerprintOf(signer.publicKey, testDigest);
      expect(sessions[0]?.trust).toEqual({ kind: "signed", fingerprint, timeMs: Date.UTC(2026, 0, 1), isTrusted: true });
    }
  });

  it("needs no signature as long as nobody asks for one", async () => {
    const verdict = verdictOn(fileOf(await family(), "lines"), { signatures });
    expect([verdict.isIntact, verdict.sessions.map(({ trust }) => trust)]).toEqual([true, [{ kind: "unsigned" }, { kind: "unsigned" }]]);
    const signed = verdictOn(fileOf(await family(signer), "lines"), { signatures });
    expect(signed.sessions[0]?.trust).toMatchObject({ kind: "signed", isTrusted: undefined });
  });

  it("may be formatted otherwise, as long as it says the same", async () => {
    const lines = fileOf(await family(), "lines")
      .toString()
      .trimEnd()
      .split("\n");
    const spaced = lines.map((line) => `  ${JSON.stringify(JSON.parse(line), null, 1).replaceAll("\n", " ")} \r\n\n`).join("");
    expect(faultsOf(Buffer.from(spaced))).toEqual([]);
  });
});

describe("a record that was changed", () => {
  it("is found, whichever field it is, in a session and in one that shares it", async () => {
    const items = await exportedItems(await sample(), uid("b"));
    const records = items.flatMap((item) => (item.kind === "record" ? [jsonOf(item.bytes)] : []));
    const others = items.filter(({ kind }) => kind === "header" || kind === "session");
    const start = fileOf(others, "lines").toString();
    const rest = fileOf(
      items.filter(({ kind }) => kind === "head" || kind === "end"),
      "lines",
    ).toString();
    const linesOf = (tampered: readonly JsonObject[]) =>
      tampered.map((record, index) => `${JSON.stringify({ kind: "record", session: index < 6 ? "a" : "b", record })}\n`).join("");
    expect(faultsOf(Buffer.from(start + linesOf(records) + rest))).toEqual([]);
    let count = 0;
    for (const { name, records: tampered } of [...fieldTamperings(records), ...chainTamperings(records)]) {
      count += 1;
      expect(faultsOf(Buffer.from(start + linesOf(tampered) + rest)), name).not.toEqual([]);
    }
    expect(count).toBeGreaterThan(500);
  });

  it("is told with its place, and what is right beside it too", async () => {
    const items = await family();
    const tampered = changed(items, (item) => {
      if (item.kind !== "record" || decodeLogRecord(item.bytes).seq !== 12n) return [item];
      return [recordItem("a", { ...jsonOf(item.bytes), event: { execution_id: "forged" } })];
    });
    const { faults, sessions } = verdictOn(fileOf(tampered, "lines"), { signatures });
    expect(faults).toMatchObject([
      { kind: "chain", session: "a", message: "record 12 breaks the chain", chain: { kind: "content-hash", seq: 12 } },
    ]);
    expect(sessions.map(({ facts, records, isIntact }) => [facts.seed.uid, records, isIntact])).toEqual([
      ["a", 11, false],
      ["b", 2, true],
    ]);
  });

  it("takes the sessions that share it with it", async () => {
    const items = await family();
    const tampered = changed(items, (item) => {
      if (item.kind !== "record" || decodeLogRecord(item.bytes).seq !== 3n) return [item];
      return [recordItem("a", rehashed({ ...jsonOf(item.bytes), event: { execution_id: "forged" } }))];
    });
    expect(kindsOf(tampered)).toEqual([
      "chain a: record 4 breaks the chain",
      "chain b: its parent's record 6 is not right, so nothing can be said of its own",
    ]);
  });

  it("is found where its bytes and its JSON say different things, or its JSON two things", async () => {
    const [header, session, first, ...rest] = fileOf(await exportedItems(await sample(), uid("a")), "lines")
      .toString()
      .split("\n");
    const withFirst = (line: string) => faultsOf(Buffer.from([header, session, line, ...rest].join("\n")));
    expect(withFirst(first ?? "")).toEqual([]);
    const other = rest.find((line) => line.includes('"record"')) ?? "";
    const bytes = Buffer.from(itemsOf(Buffer.from(`${other}\n`)).flatMap((item) => (item.kind === "record" ? [...item.bytes] : [])));
    const both = `${first?.slice(0, -1)},"log_record":"${bytes.toString("base64")}"}`;
    expect(withFirst(both)).toEqual(["format file: file: line 3 is wrong: log_record: must be the encoding of record"]);
    const twice = first?.replace('"execution_id":', '"execution_id":"another","execution_id":') ?? "";
    expect(withFirst(twice)).toEqual(["format file: file: line 3 has a key twice"]);
    const escaped = first?.replace('"execution_id":', '"execution\\u005fid":"another","execution_id":') ?? "";
    expect(withFirst(escaped)).toEqual(["format file: file: line 3 has a key twice"]);
    const camel = first?.replace('"execution_id":', '"executionId":') ?? "";
    expect(withFirst(camel)[0]).toMatch(/line 3 is wrong: record: must be written as exports write it/);
  });

  it("is found where a number would be rounded when it is read", async () => {
    const file = fileOf(await exportedItems(await sample(), uid("a")), "lines").toString();
    expect(file).toContain("-3.25");
    expect(faultsOf(Buffer.from(file.replace("-3.25", "-3.25000000000000000000001")))[0]).toMatch(/a number that its readers may round/);
  });
});

describe("a head", () => {
  it("tells that records are missing at the end", async () => {
    const items = await family(signer);
    const cut = changed(items, (item) => {
      if (item.kind === "session" && item.facts.seed.uid === "a") return [{ ...item, facts: { ...item.facts, lastSeq: 12 as never } }];
      if (item.kind === "end") return [{ ...item, records: item.records - 2 }];
      return item.kind === "record" && decodeLogRecord(item.bytes).seq > 12n ? [] : [item];
    });
    expect(kindsOf(cut, { trusted })).toEqual(["truncated a: records 13 to 14 are missing: the head is record 14"]);
  });

  it("tells that a chain was built anew", async () => {
    const items = await family(signer);
    const rebuilt = changed(items, (item) => {
      if (item.kind !== "record" || item.session !== "b" || decodeLogRecord(item.bytes).seq !== 8n) return [item];
      return [recordItem("b", rehashed({ ...jsonOf(item.bytes), event: { execution_id: "forged" } }))];
    });
    expect(kindsOf(rebuilt, { trusted })).toEqual(["rebuilt b: record 8 is not the one that the head names: the chain was built anew"]);
  });

  it("tells that it is older than the records", async () => {
    const journal = await sample();
    const row = (await journal.get(uid("b")))!;
    const old = await signHead(uid("b"), { seq: row.projection.lastSeq, hash: row.projection.headHash }, signer, testDigest, 0);
    await append(journal, "b", output("nine"), output("ten"));
    const items = await exportedItems(journal, uid("b"), { signer });
    expect(
      kindsOf(
        withHead(items, "b", () => old),
        { trusted },
      ),
    ).toEqual(["outdated b: the head is record 8, older than the last one: it does not cover records 9 to 10"]);
  });

  it("must be there, signed, by its own key, and by one that is trusted", async () => {
    const items = await family(signer);
    const without = changed(items, (item) => (item.kind === "head" && item.head.session === "a" ? [] : [item]));
    expect(kindsOf(without)).toEqual(["truncated a: its head is missing"]);
    const unsigned = await family();
    expect(kindsOf(unsigned, { trusted })).toEqual(["unsigned a: its head has no signature", "unsigned b: its head has no signature"]);
    const other = newKeyPair();
    const keyId = fingerprintOf(signerOf(other.privatePem, "key").publicKey, testDigest).slice(0, 16);
    expect(kindsOf(await family(signerOf(other.privatePem, "key")), { trusted })).toEqual([
      `untrusted a: its head is signed by the key ${keyId}, which is not one of the trusted keys`,
      `untrusted b: its head is signed by the key ${keyId}, which is not one of the trusted keys`,
    ]);
  });

  it("is forged when anything of it was changed, or anything of its signature taken away", async () => {
    const items = await family(signer);
    const { publicKey } = signerOf(newKeyPair().privatePem, "key");
    const changes: readonly ((head: SignedHead) => Partial<SignedHead>)[] = [
      ({ signature }) => ({ signature: signature.map((byte, index) => (index === 9 ? byte ^ 1 : byte)) }),
      ({ signature }) => ({ signature: signature.subarray(1) }),
      () => ({ signature: new Uint8Array() }),
      ({ time }) => ({ time: { ...time!, seconds: time!.seconds + 1n } }),
      () => ({ time: undefined }),
      () => ({ publicKey }),
      () => ({ publicKey: Uint8Array.of(1, 2, 3) }),
      ({ publicKey: spki }) => ({ publicKey: Uint8Array.of(...spki, 0) }),
      () => ({ keyId: "0000000000000000" }),
      ({ keyId }) => ({ keyId: keyId.slice(1) }),
      () => ({ keyId: "" }),
    ];
    for (const change of changes) {
      const forged = withHead(items, "b", (head) => ({ ...head, ...change(head) }));
      expect(kindsOf(forged)).toEqual(["forged b: the signature of its head is not that of the key that it names"]);
    }
    const moved = withHead(items, "b", (head) => ({ ...head, seq: 7n }));
    expect(kindsOf(moved).map((fault) => fault.split(" ")[0])).toEqual(["outdated", "forged"]);
  });

  it("of another session, signed by a trusted key, is of no use", async () => {
    const items = await family(signer);
    const heads = items.flatMap((item) => (item.kind === "head" ? [item.head] : []));
    const swapped = withHead(items, "b", (head) => ({ ...heads[0]!, session: head.session }));
    expect(kindsOf(swapped, { trusted }).map((fault) => fault.split(" ")[0])).toEqual(["truncated", "forged"]);
  });

  it("that was kept elsewhere tells of a whole file that was cut or made anew", async () => {
    const journal = await sample();
    const early = { seq: 3, hash: (await firstRecord(journal, 3)).hash } as never;
    const kept = async (head: { seq: number; hash: string }) =>
      new Map([["a", await signHead("a" as SessionUid, head as never, signer, testDigest, 0)]]);
    const file = await exportedFile(journal, uid("a"));
    expect(faultsOf(file, { kept: await kept(early) })).toEqual([]);
    expect(faultsOf(file, { kept: await kept({ seq: 3, hash: "another" }) })).toEqual([
      "rebuilt a: record 3 is not the one that the head that was kept names: the chain was built anew",
    ]);
    expect(faultsOf(file, { kept: await kept({ seq: 15, hash: "later" }) })).toEqual([
      "truncated a: record 15 is missing: the head that was kept is record 15",
    ]);
  });
});

async function firstRecord(journal: JournalStore, seq: number): Promise<{ hash: string }> {
  for await (const page of journal.read({ session: uid("a") })) {
    const found = page.find((record) => record.seq === seq);
    if (found !== undefined) return { hash: found.contentHash };
  }
  throw new Error("the record is there");
}

describe("the file as a whole", () => {
  it("is not taken for whole when it is cut anywhere, in either form", async () => {
    for (const form of ["lines", "binary"] as const) {
      const file = fileOf(await family(signer), form);
      const step = form === "lines" ? 7 : 1;
      for (let length = 0; length < file.length - 1; length += step) {
        expect(verdictOn(file.subarray(0, length), { signatures }).isIntact, `${form} cut to ${length}`).toBe(false);
      }
    }
  });

  it("has nothing behind its end", async () => {
    const items = await family();
    for (const item of items) {
      for (const form of ["lines", "binary"] as const) {
        const file = fileOf([...items, item], form);
        expect(verdictOn(file, { signatures }).faults[0]?.message).toMatch(/follows the end/);
      }
    }
  });

  it("has every item once, in its place", async () => {
    const items = await family(signer);
    for (const [index, item] of items.entries()) {
      const places = { dropped: items.toSpliced(index, 1), doubled: items.toSpliced(index, 0, item) };
      // What is beside a record is covered by nothing, as a session's facts are.
      if (item.kind !== "aside") expect(kindsOf(places.dropped), `${item.kind} ${index} dropped`).not.toEqual([]);
      expect(kindsOf(places.doubled), `${item.kind} ${index} doubled`).not.toEqual([]);
      const next = items[index + 1];
      if (next === undefined) continue;
      expect(kindsOf(items.toSpliced(index, 2, next, item)), `${item.kind} ${index} swapped with ${next.kind}`).not.toEqual([]);
    }
  });

  it("is found changed at any byte of the binary form that a hash, a signature or the format covers", { timeout: 60_000 }, async () => {
    const journal = createMemoryStore({ clock: new VirtualClock(), digest: testDigest });
    await created(journal, "a", { labels: { key: "value" } });
    await append(journal, "a", executionStart(), output("two"), end());
    forked(await journal.fork(await forkRequest(journal, "a", 2, "b")));
    const file = await exportedFile(journal, uid("a"), { form: "binary", family: true, signer });
    const before = uncovered(itemsOf(file));
    let uncoveredFlips = 0;
    for (let at = 0; at < file.length; at++) {
      const flipped = Buffer.from(file);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << (at % 8));
      if (!verdictOn(flipped, { signatures, trusted }).isIntact) continue;
      // The verdict may only be sound if what differs is a session's fact, a fence, the sign of a zero, or what is beside a record.
      uncoveredFlips += 1;
      expect(uncovered(itemsOf(flipped)), `byte ${at}`).toEqual(before);
    }
    expect(uncoveredFlips).toBeGreaterThan(0);
    expect(uncoveredFlips).toBeLessThan(file.length / 10);
  });

  it("is refused when it is of some other kind or version, and says so", () => {
    const text = (lines: string) => faultsOf(Buffer.from(lines));
    expect(text("")).toEqual(["format file: file is empty"]);
    expect(text("hello\n")).toEqual(["format file: file: line 1 is no JSON"]);
    expect(text('{"kind":"header","format":"other","version":1}\n')).toEqual([
      "format file: file: line 1 is the header of some other format",
    ]);
    expect(text('{"kind":"header","format":"holdfast.export","version":2}\n')).toEqual([
      "format file: file: item 1 must have version 1, the one that is known here",
    ]);
    expect(text('{"kind":"end","sessions":"0","records":"0"}\n')).toEqual(["format file: file: item 1 must be the header of an export"]);
    expect(text("[]\n")).toEqual(["format file: file: line 1 is no JSON object"]);
    expect(text('{"kind":"header","format":"holdfast.export","version":1,"more":1}\n')[0]).toMatch(/line 1 is wrong: more/);
    expect(faultsOf(Buffer.from([0x22, 0xff, 0x22, 0x0a]))).toEqual(["format file: file: line 1 is no UTF-8"]);
  });
});

/** What is left of items without that which nothing covers. */
function uncovered(items: readonly ArchiveItem[]): unknown[] {
  return items.map((item) => {
    switch (item.kind) {
      case "session":
        return [item.kind, item.facts.parent, item.facts.lastSeq, item.facts.prefixOnly];
      case "record": {
        const { seq, prevHash, contentHash, event } = decodeLogRecord(item.bytes);
        return [seq, prevHash, contentHash, canonicalEvent(event!)];
      }
      case "aside":
        return [item.kind, item.seq];
      case "head":
        return { ...item.head, $typeName: SignedHeadSchema.typeName };
      default:
        return item;
    }
  });
}
