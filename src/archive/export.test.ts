import { describe, expect, it } from "vitest";
import type { Seq, SessionUid } from "../base/index.ts";
import type { JournalStore } from "../journal/index.ts";
import { nodeSignatures } from "../node/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { exportedFile, exportedItems, importFile, verdictOn } from "../testing/archive-files.ts";
import {
  append,
  created,
  deletion,
  forked,
  forkRequest,
  output,
  recordsOf,
  textsOf,
  uid,
} from "../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../testing/ports.ts";
import { exportSessions, type ArchiveItem } from "./index.ts";

const open = (): JournalStore => createMemoryStore({ clock: new VirtualClock(), digest: testDigest });
const signatures = nodeSignatures;

/** `a` (four records) forked at 2 into `b`, which has a record more and is forked at 4 into `c` and at 1 into `d`. */
async function family(): Promise<JournalStore> {
  const journal = open();
  await created(journal, "a");
  await append(journal, "a", output("one"), output("two"), output("three"), output("four"));
  forked(await journal.fork(await forkRequest(journal, "a", 2, "b")));
  await append(journal, "b", output("b-four"), output("b-five"));
  forked(await journal.fork(await forkRequest(journal, "b", 4, "c")));
  forked(await journal.fork(await forkRequest(journal, "b", 1, "d")));
  return journal;
}

/** Items in short words: a session with what is there of it, a record by its session, a head by its seq. */
function outlineOf(items: readonly ArchiveItem[]): string[] {
  return items.map((item) => {
    switch (item.kind) {
      case "session":
        return `session ${item.facts.seed.uid}${item.facts.prefixOnly ? " prefix" : ""} to ${item.facts.lastSeq}`;
      case "record":
      case "aside":
        return `${item.kind} of ${item.session}`;
      case "head":
        return `head ${item.head.session} ${item.head.seq}`;
      default:
        return item.kind;
    }
  });
}

const times = (count: number, text: string): string[] => Array.from({ length: count }, () => text);

async function outline(journal: JournalStore, session: string, options = {}): Promise<string[]> {
  return outlineOf(await exportedItems(journal, uid(session), options));
}

describe("what is exported", () => {
  it("of a session alone is its records and its head", async () => {
    expect(await outline(await family(), "a")).toEqual(["header", "session a to 4", ...times(4, "record of a"), "head a 4", "end"]);
  });

  it("of a fork alone is the prefix that it needs, each record with the session that wrote it", async () => {
    const sessions = ["session a prefix to 2", "session b prefix to 4", "session c to 5"];
    const records = [...times(2, "record of a"), ...times(2, "record of b"), "record of c"];
    expect(await outline(await family(), "c")).toEqual(["header", ...sessions, ...records, "head c 5", "end"]);
  });

  it("of a fork at what its parent inherited skips the parent's own records", async () => {
    const sessions = ["session a prefix to 1", "session b prefix to 1", "session d to 2"];
    expect(await outline(await family(), "d")).toEqual(["header", ...sessions, "record of a", "record of d", "head d 2", "end"]);
  });

  it("of a family is every session, whichever was named, and shared records once", async () => {
    const journal = await family();
    const sessions = ["session a to 4", "session b to 5", "session c to 5", "session d to 2"];
    const first = [...times(4, "record of a"), "head a 4", ...times(3, "record of b"), "head b 5"];
    const whole = ["header", ...sessions, ...first, "record of c", "head c 5", "record of d", "head d 2", "end"];
    for (const session of ["a", "b", "c", "d"]) expect(await outline(journal, session, { family: true })).toEqual(whole);
  });

  it("of a family leaves out deleted sessions but for what others share, unless one was named", async () => {
    const journal = await family();
    for (const session of ["b", "d"]) await append(journal, session, deletion());
    const sessionsOf = async (session: string) =>
      (await outline(journal, session, { family: true })).filter((word) => word.startsWith("session"));
    expect(await sessionsOf("a")).toEqual(["session a to 4", "session b prefix to 4", "session c to 5"]);
    expect(await sessionsOf("d")).toEqual(["session a to 4", "session b prefix to 4", "session c to 5", "session d to 3"]);
  });

  it("of a session without records is its head alone", async () => {
    const journal = open();
    await created(journal, "a");
    expect(await outline(journal, "a")).toEqual(["header", "session a to 0", "head a 0", "end"]);
    const other = open();
    await importFile(other, await exportedFile(journal, uid("a")), signatures);
    expect(await exportedFile(other, uid("a"))).toEqual(await exportedFile(journal, uid("a")));
  });

  it("ends at the heads that the sessions had when it began", async () => {
    const journal = await family();
    const row = (await journal.get(uid("a")))!;
    const items: ArchiveItem[] = [];
    for await (const some of exportSessions({ journal, clock: new VirtualClock(), digest: testDigest }, { row, family: false })) {
      if (items.length === 0) await append(journal, "a", output("later"));
      items.push(...some);
    }
    expect(outlineOf(items)).toContain("head a 4");
    expect(items.at(-1)).toEqual({ kind: "end", sessions: 1, records: 4 });
  });

  it("is refused for a session of which only a prefix is here, and for what its caller may not read", async () => {
    const journal = await family();
    const context = { journal, clock: new VirtualClock(), digest: testDigest };
    await append(journal, "a", deletion());
    await journal.reclaim(uid("a"));
    const drain = async (session: string, allow?: () => Promise<void>) => {
      const row = (await journal.get(uid(session)))!;
      for await (const items of exportSessions(context, { row, family: false, allow })) void items;
    };
    await expect(drain("a")).rejects.toMatchObject({ code: "failed_precondition" });
    const asked: unknown[] = [];
    const refuse = async (row?: { seed: { uid: string } }) => {
      asked.push(row?.seed.uid);
      if (row?.seed.uid === "b") throw new Error("not yours");
    };
    await expect(drain("c", refuse)).rejects.toThrow("not yours");
    expect(asked).toEqual(["a", "b"]);
  });

  it("says that it lost a session which is reclaimed meanwhile", async () => {
    const journal = open();
    await created(journal, "a");
    await append(journal, "a", ...Array.from({ length: 600 }, () => output("x")), deletion());
    const row = (await journal.get(uid("a")))!;
    const drain = async () => {
      for await (const items of exportSessions({ journal, clock: new VirtualClock(), digest: testDigest }, { row, family: false })) {
        if (items[0]?.kind === "record") await journal.reclaim(uid("a"));
      }
    };
    await expect(drain()).rejects.toMatchObject({ code: "aborted" });
  });
});

describe("what is left of reclaimed sessions", () => {
  /** `d` hangs on a's first record through `b`, of which nothing of its own is left. */
  async function remains(): Promise<JournalStore> {
    const journal = await family();
    for (const session of ["c", "b", "a"]) await append(journal, session, deletion());
    for (const session of ["c", "b", "a"]) while ((await journal.reclaim(uid(session))).kind === "more");
    return journal;
  }

  it("is exported with a session that shares it, and comes out the same elsewhere", async () => {
    const journal = await remains();
    for (const form of ["lines", "binary"] as const) {
      for (const whole of [false, true]) {
        const file = await exportedFile(journal, uid("d"), { form, family: whole });
        expect(verdictOn(file, { signatures }).faults).toEqual([]);
        const other = open();
        await importFile(other, file, signatures);
        expect(await exportedFile(other, uid("d"), { form, family: whole })).toEqual(file);
        expect(textsOf(await recordsOf(other, "d"))).toEqual(["one", "#9"]);
      }
    }
  });

  it("is filled up by a later import that has more of it", async () => {
    const other = open();
    await importFile(other, await exportedFile(await remains(), uid("d")), signatures);
    expect((await other.get(uid("b")))?.keptSeq).toBe(1);
    const whole = await exportedFile(await family(), uid("c"), { family: true });
    const { sessions } = await importFile(other, whole, signatures);
    expect(sessions.map(({ uid: session, outcome }) => `${session} ${outcome}`)).toEqual([
      "a created",
      "b created",
      "c created",
      "d unchanged",
    ]);
    expect(await exportedFile(other, uid("a"), { family: true })).toEqual(whole);
    expect((await other.list({ limit: 9 })).rows.map(({ keptSeq }) => keptSeq)).toEqual(Array.from({ length: 4 }, () => undefined));
  });

  it("grows by an import of another session that shares more", async () => {
    const other = open();
    const journal = await family();
    await importFile(other, await exportedFile(journal, uid("d")), signatures);
    await importFile(other, await exportedFile(journal, uid("c")), signatures);
    expect(await Promise.all(["a", "b"].map(async (session) => (await other.get(session as SessionUid))?.keptSeq))).toEqual([
      2, 4,
    ] as Seq[]);
    expect(await exportedFile(other, uid("c"), { family: true })).toEqual(await exportedFile(other, uid("d"), { family: true }));
    for (const session of ["c", "d"]) expect(await recordsOf(other, session)).toEqual(await recordsOf(journal, session));
  });
});
