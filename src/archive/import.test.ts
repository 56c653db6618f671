import { describe, expect, it } from "vitest";
import { HoldfastError, type HostId, type Seq, type SessionUid } from "../base/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { newKeyPair, nodeSignatures, signerOf } from "../node/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { openSqliteStore } from "../stores/sqlite/index.ts";
import { cut, exportedFile, exportedItems, fileOf, importFile } from "../testing/archive-files.ts";
import {
  append,
  claimAs,
  created,
  deletion,
  end,
  executionStart,
  forked,
  forkRequest,
  output,
  recordsOf,
  rowOf,
  textsOf,
  uid,
} from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { CONTINUED_RECORDS_MAX, importSessions, type ArchiveItem } from "./index.ts";

const signatures = nodeSignatures;
const open = (clock = new VirtualClock()): JournalStore => createMemoryStore({ clock, digest: testDigest });
const HOST = "host" as HostId;

/** `a` with a turn and a name, of which `b` shares two records. */
async function sample(): Promise<JournalStore> {
  const journal = open();
  await created(journal, "a", { name: "first", project: "p", labels: { key: "value" } });
  for (let claims = 0; claims < 3; claims++) await journal.append(claimAs("a", HOST));
  await append(journal, "a", executionStart(), output("two"), end());
  forked(await journal.fork(await forkRequest(journal, "a", 2, "b")));
  await append(journal, "b", output("b-four"));
  return journal;
}

async function outcomesOf(journal: JournalStore, file: Uint8Array): Promise<string[]> {
  const { sessions, recordsAdded } = await importFile(journal, file, signatures);
  return [...sessions.map(({ uid: session, outcome, lastSeq }) => `${session} ${outcome} ${lastSeq}`), `added ${recordsAdded}`];
}

/** The code with which an import is refused. */
async function refusal(journal: JournalStore, file: Uint8Array): Promise<HoldfastError> {
  return importFile(journal, file, signatures).then(
    () => expect.fail("the import was taken"),
    (error: unknown) => (error instanceof HoldfastError ? error : expect.fail(String(error))),
  );
}

/** Everything that a journal has, deleted and incomplete sessions too. */
async function everything(journal: JournalStore): Promise<unknown[]> {
  const { rows } = await journal.list({ limit: 500, includeDeleted: true });
  return Promise.all(rows.map(async (row) => [row, await recordsOf(journal, row.seed.uid)]));
}

describe("an import", () => {
  it("makes the sessions as they were, and the next turn goes on above their fences", async () => {
    const from = await sample();
    const to = open();
    expect(await outcomesOf(to, await exportedFile(from, uid("a"), { family: true }))).toEqual(["a created 3", "b created 4", "added 5"]);
    const [row, original] = [await rowOf(to, "a"), await rowOf(from, "a")];
    expect([row.seed, row.fence, row.keptSeq]).toEqual([original.seed, 3, undefined]);
    expect(row.projection).toEqual(original.projection);
    expect((await rowOf(to, "b")).parent).toEqual({ uid: "a", forkSeq: 2 });
    expect(await to.append(claimAs("a", HOST))).toMatchObject({ kind: "appended", fence: 4 });
    expect(await to.append(claimAs("b", HOST))).toMatchObject({ kind: "appended", fence: 5 });
  });

  it("of a fork alone leaves its ancestors as prefixes: not listed, not used", async () => {
    const to = open();
    expect(await outcomesOf(to, await exportedFile(await sample(), uid("b")))).toEqual(["a prefix 2", "b created 4", "added 4"]);
    expect((await to.list({ limit: 9 })).rows.map((row) => row.seed.uid)).toEqual(["b"]);
    expect(await to.append(claimAs("a", HOST))).toEqual({ kind: "deleted" });
    expect(textsOf(await recordsOf(to, "b"))).toEqual(["#12", "two", "#9", "b-four"]);
  });

  it("repeated changes nothing", async () => {
    const file = await exportedFile(await sample(), uid("a"), { family: true });
    const to = open();
    await importFile(to, file, signatures);
    const before = await everything(to);
    expect(await outcomesOf(to, file)).toEqual(["a unchanged 3", "b unchanged 4", "added 0"]);
    expect(await everything(to)).toEqual(before);
  });

  it("leaves a session alone that has gone on since", async () => {
    const file = await exportedFile(await sample(), uid("a"));
    const to = open();
    await importFile(to, file, signatures);
    await append(to, "a", output("on"));
    expect(await outcomesOf(to, file)).toEqual(["a unchanged 4", "added 0"]);
  });

  it("continues a session that is behind, in one step that its watchers are told of", async () => {
    const from = await sample();
    const to = open();
    await importFile(to, await exportedFile(from, uid("a")), signatures);
    await append(from, "a", executionStart("turn-2"), output("more"), end());
    const seen: number[] = [];
    to.watch(uid("a"), (records) => seen.push(records.length));
    expect(await outcomesOf(to, await exportedFile(from, uid("a")))).toEqual(["a continued 6", "added 3"]);
    expect([seen, await recordsOf(to, "a")]).toEqual([[3], await recordsOf(from, "a")]);
  });

  it("does not continue a session that is far behind: half of it could be seen", async () => {
    const from = await sample();
    const to = open();
    await importFile(to, await exportedFile(from, uid("a")), signatures);
    const before = await everything(to);
    const more = (count: number) => append(from, "a", ...Array.from({ length: count }, () => output("x")));
    await more(CONTINUED_RECORDS_MAX);
    const file = await exportedFile(from, uid("a"));
    await more(1);
    expect(await refusal(to, await exportedFile(from, uid("a")))).toMatchObject({ code: "failed_precondition" });
    expect(await everything(to)).toEqual(before);
    expect(await outcomesOf(to, file)).toEqual([`a continued ${3 + CONTINUED_RECORDS_MAX}`, `added ${CONTINUED_RECORDS_MAX}`]);
  });

  it("takes a deleted session as one", async () => {
    const from = await sample();
    await append(from, "a", deletion());
    const to = open();
    expect(await outcomesOf(to, await exportedFile(from, uid("a")))).toEqual(["a created 4", "added 4"]);
    expect((await to.list({ limit: 9 })).rows).toEqual([]);
    expect((await rowOf(to, "a")).keptSeq).toBeUndefined();
  });

  it("keeps heads that are signed, and refuses those that are forged", async () => {
    const signer = signerOf(newKeyPair().privatePem, "key");
    const items = await exportedItems(await sample(), uid("a"), { signer });
    await importFile(open(), fileOf(items, "lines"), signatures);
    const forged = items.map((item): ArchiveItem =>
      item.kind === "head" ? { kind: "head", head: { ...item.head, time: { ...item.head.time!, seconds: 1n } } } : item,
    );
    expect(await refusal(open(), fileOf(forged, "lines"))).toMatchObject({ code: "invalid_argument" });
  });
});

describe("an import is refused, and nothing of it remains", () => {
  async function refused(to: JournalStore, file: Uint8Array): Promise<[string, string]> {
    const before = await everything(to);
    const { code, message } = await refusal(to, file);
    expect(await everything(to)).toEqual(before);
    return [code, message];
  }

  it("when another session has the uid", async () => {
    const file = await exportedFile(await sample(), uid("a"), { family: true });
    const other = open();
    await created(other, "b");
    expect(await refused(other, file)).toEqual([
      "already_exists",
      "session b: a session here has this uid, and is not the one in the file",
    ]);
    const sameFacts = open();
    const { seed } = await rowOf(await sample(), "a");
    await sameFacts.create(seed);
    await append(sameFacts, "a", output("another"));
    expect((await refused(sameFacts, file))[0]).toBe("already_exists");
  });

  it("when both have gone on since, each its own way", async () => {
    const from = await sample();
    const to = open();
    await importFile(to, await exportedFile(from, uid("a")), signatures);
    await append(from, "a", output("there"));
    await append(to, "a", output("here"));
    expect((await refused(to, await exportedFile(from, uid("a"))))[0]).toBe("already_exists");
  });

  it("when the name of one is taken, which a session of the same import may do too", async () => {
    const from = await sample();
    const to = open();
    await created(to, "other", { name: "first", project: "p" });
    expect(await refused(to, await exportedFile(from, uid("a"), { family: true }))).toEqual([
      "already_exists",
      "session a: a session of its project has its name",
    ]);
    const items = await exportedItems(from, uid("a"), { family: true });
    const renamed = items.map((item): ArchiveItem => {
      if (item.kind !== "session") return item;
      return { kind: "session", facts: { ...item.facts, seed: { ...item.facts.seed, name: "same", project: "p" } } };
    });
    expect((await refused(open(), fileOf(renamed, "lines")))[0]).toBe("already_exists");
  });

  it("when the session was deleted here, until it is reclaimed", async () => {
    const from = await sample();
    const to = open();
    await importFile(to, await exportedFile(from, uid("a")), signatures);
    await append(to, "a", deletion());
    const told = ["failed_precondition", "session a: it was deleted here; it can be imported once it is reclaimed"];
    expect(await refused(to, await exportedFile(from, uid("a")))).toEqual(told);
    const gone = open();
    await importFile(gone, await exportedFile(from, uid("a")), signatures);
    forked(await gone.fork(await forkRequest(gone, "a", 2, "c")));
    await append(gone, "a", deletion());
    await gone.reclaim(uid("a"));
    expect(await refused(gone, await exportedFile(from, uid("a")))).toEqual(told);
    // A fork that shares no more than what is left may hang on to it.
    expect(await outcomesOf(gone, await exportedFile(from, uid("b")))).toEqual(["a prefix 4", "b created 4", "added 2"]);
  });

  it("when a turn of a session runs that it would continue", async () => {
    const from = await sample();
    const to = open();
    await importFile(to, await exportedFile(from, uid("a")), signatures);
    await append(from, "a", output("more"));
    await to.append(claimAs("a", HOST));
    expect((await refused(to, await exportedFile(from, uid("a"))))[0]).toBe("aborted");
  });

  it("when any item is missing, doubled or swapped, and when the file is cut", async () => {
    const items = await exportedItems(await sample(), uid("a"), { family: true });
    for (const [index, item] of items.entries()) {
      const next = items[index + 1];
      const changed = [items.toSpliced(index, 1), items.toSpliced(index, 0, item), items.slice(0, index)];
      if (next !== undefined) changed.push(items.toSpliced(index, 2, next, item));
      for (const wrong of changed) expect((await refused(open(), fileOf(wrong, "binary")))[0]).toBe("invalid_argument");
    }
  });

  it("when a record is nested deeper than any can be, however deep that is", async () => {
    const text = (await exportedFile(await sample(), uid("a"))).toString();
    for (const levels of [1_000, 1_000_000]) {
      const deep = text.replace('{"text":"two"}', () => `{"text":${"[".repeat(levels)}${"]".repeat(levels)}}`);
      expect(deep.length).toBeGreaterThan(text.length);
      expect((await refusal(open(), Buffer.from(deep))).message).toMatch(/^file: line \d+ is nested too deeply$/);
    }
  });

  it("when its caller may not have one of the sessions", async () => {
    const file = await exportedFile(await sample(), uid("a"), { family: true });
    const to = open();
    const allow = async ({ seed }: { seed: { uid: string } }) => {
      if (seed.uid === "b") throw new HoldfastError("permission_denied", "not yours");
    };
    const context = { journal: to, digest: testDigest, signatures };
    await expect(importSessions(context, cut(file, 64), { allow })).rejects.toMatchObject({ code: "permission_denied" });
    expect(await everything(to)).toEqual([]);
  });

  it("when its sender gives up in the middle", async () => {
    const file = await exportedFile(await sample(), uid("a"), { family: true });
    const to = open();
    const giving = new AbortController();
    async function* chunks(): AsyncGenerator<Uint8Array, void, undefined> {
      yield file.subarray(0, file.length - 100);
      giving.abort(new HoldfastError("cancelled", "enough"));
      yield file.subarray(file.length - 100);
    }
    const context = { journal: to, digest: testDigest, signatures };
    await expect(importSessions(context, chunks(), { signal: giving.signal })).rejects.toMatchObject({ code: "cancelled" });
    expect(await everything(to)).toEqual([]);
  });
});

/** A journal that stops to write at some point, as if the process were killed: no clean-up either. */
function killedAfter(journal: JournalStore, writes: number): JournalStore {
  let left = writes;
  const write = async <T>(call: () => Promise<T>): Promise<T> => {
    if (left <= 0) throw new HoldfastError("unavailable", "killed");
    left -= 1;
    return call();
  };
  return {
    name: journal.name,
    create: (seed) => journal.create(seed),
    get: (session) => journal.get(session),
    list: (request) => journal.list(request),
    append: (request) => journal.append(request),
    read: (request) => journal.read(request),
    readAsides: (request) => journal.readAsides(request),
    receipts: (session, query) => journal.receipts(session, query),
    reclaim: (session) => write(() => journal.reclaim(session)),
    adopt: (request) => write(() => journal.adopt(request)),
    complete: (sessions) => write(() => journal.complete(sessions)),
    fork: (request) => journal.fork(request),
    renew: (request) => journal.renew(request),
    watch: (session, listener) => journal.watch(session, listener),
    ready: () => journal.ready(),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

describe("an import that was killed", () => {
  it("shows nothing, and repeated it comes to the same end, wherever that was", async () => {
    const from = await sample();
    await append(from, "a", ...Array.from({ length: 600 }, () => output("x")));
    forked(await from.fork(await forkRequest(from, "a", 500, "c")));
    const file = await exportedFile(from, uid("a"), { family: true, form: "binary" });
    let points = 0;
    for (let writes = 0; ; writes++) {
      using folder = new TemporaryFolder();
      const openAgain = () => openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });
      const first = await openAgain();
      const isKilled = await importFile(killedAfter(first, writes), file, signatures).then(
        () => false,
        () => true,
      );
      await first[Symbol.asyncDispose]();
      if (!isKilled) break;
      points += 1;
      await using second = await openAgain();
      expect((await second.list({ limit: 9 })).rows).toEqual([]);
      await importFile(second, file, signatures);
      expect((await exportedFile(second, uid("a"), { family: true, form: "binary" })).equals(file)).toBe(true);
    }
    expect(points).toBeGreaterThan(5);
  });

  it("is no obstacle to another import under way: the later one is told to retry", async () => {
    const file = await exportedFile(await sample(), uid("a"), { family: true });
    const to = open();
    const answers = await Promise.allSettled([importFile(to, file, signatures, 64), importFile(to, file, signatures, 64)]);
    const failed = answers.flatMap((answer) => (answer.status === "rejected" ? [answer.reason as HoldfastError] : []));
    for (const { code } of failed) expect(code).toBe("aborted");
    await importFile(to, file, signatures);
    expect(await exportedFile(to, uid("a"), { family: true })).toEqual(file);
  });
});

describe("records of another writer", () => {
  it("are kept in the bytes that it wrote, also by way of JSON", async () => {
    const from = open();
    const { seed } = await created(open(), "a");
    const [record] = await recordsOf(await sample(), "a");
    // The same record with its fields in another order: legal, and not what we would write.
    const bytes = Uint8Array.from(record!.bytes);
    const head = bytes.subarray(0, 2);
    const foreign = Uint8Array.of(...bytes.subarray(2), ...head);
    const after = { seq: 0 as Seq, hash: "" };
    expect(await from.adopt({ seed, parent: undefined, after, records: [{ bytes: foreign }] })).toMatchObject({ kind: "adopted" });
    await from.complete(["a" as SessionUid]);
    const lines = await exportedFile(from, uid("a"));
    expect(lines.toString()).toContain('"log_record":');
    const to = open();
    await importFile(to, lines, signatures);
    expect((await recordsOf(to, "a"))[0]?.bytes).toEqual(foreign);
    expect(await exportedFile(to, uid("a"))).toEqual(lines);
  });
});
