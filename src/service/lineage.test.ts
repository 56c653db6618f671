import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { newSessionUid, type Seq, type SessionUid } from "../base/index.ts";
import { DeletionState, ExecState } from "../gen/agentsessions/v1/session_pb.ts";
import { LineageRequestSchema, type LineageRow } from "../gen/holdfast/v1/lineage_pb.ts";
import type { Authorizer } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { emptySeed, harnessCatalog, seededPorts, testHarness, TestHost } from "../testing/index.ts";
import { ALLOW_ALL } from "./access.ts";
import type { CallContext } from "./contract.ts";
import { createJournalService } from "./journal.ts";

function bench(options: { readonly reclaimed?: Set<string>; readonly authorizer?: Authorizer } = {}) {
  const ports = seededPorts(9);
  const journal = createMemoryStore(ports);
  const harnesses = { test: testHarness(async (_, sink) => sink.output("x")) };
  const host = new TestHost({ journal, ports, harnesses });
  onTestFinished(() => host[Symbol.asyncDispose]());
  /** A store that has lost the rows of some sessions, as one that reclaims storage may. */
  const view = new Proxy(journal, {
    get(target, key) {
      if (key === "get") return async (uid: SessionUid) => (options.reclaimed?.has(uid) === true ? undefined : target.get(uid));
      const own: unknown = Reflect.get(target, key);
      return typeof own === "function" ? (own.bind(target) as unknown) : own;
    },
  });
  const service = createJournalService({
    journal: view,
    controller: host.controller,
    harnesses: harnessCatalog(harnesses),
    authorizer: options.authorizer ?? ALLOW_ALL,
    ports,
  });
  let names = 0;
  const fork = async (parent: SessionUid, atSeq: number, count = 1): Promise<SessionUid[]> => {
    ports.clock.advance(1);
    const children = () =>
      Array.from({ length: count }, () => ({ ...emptySeed(newSessionUid(ports), ports.clock.nowMs()), name: `n${++names}` }));
    const rows = await host.controller.fork({ parent, atSeq: atSeq as Seq, children });
    return rows.map(({ seed }) => seed.uid);
  };
  const root = async (): Promise<SessionUid> => {
    const uid = await host.createSession({ name: "root" });
    await (
      await host.begin(uid, ["a"])
    ).outcome;
    return uid;
  };
  const ask = (session: string, rowsMax = 0) => service.lineage(create(LineageRequestSchema, { session, rowsMax }), context);
  return { host, fork, root, ask };
}

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };
const drawn = (rows: readonly LineageRow[]): string[] => rows.map(({ depth, name, forkSeq }) => `${"  ".repeat(depth)}${name}@${forkSeq}`);

describe("Lineage", () => {
  it("is the same tree from every member: each after its parent, siblings by where they were forked, then by age", async () => {
    const { fork, root, ask } = bench();
    const top = await root();
    const [late] = await fork(top, 4);
    const [left, right] = await fork(top, 2, 2);
    const [deep] = await fork(right!, 3);
    await fork(top, 2);
    for (const member of [top, late!, left!, right!, deep!]) {
      const { rows, truncated } = await ask(member);
      expect(drawn(rows)).toEqual(["root@0", "  n2@2", "  n3@2", "    n4@3", "  n5@2", "  n1@4"]);
      expect(truncated).toBe(false);
    }
  });

  it("tells where each member stands, and goes on through deleted ones", async () => {
    const { host, fork, root, ask } = bench();
    const top = await root();
    const [middle] = await fork(top, 0);
    const [leaf] = await fork(middle!, 0);
    await host.controller.delete(middle!, undefined);
    await host.controller.delete(top, undefined);
    const { rows } = await ask(leaf!);
    expect(rows).toMatchObject([
      { uid: top, parentUid: "", lastSeq: 5n, execState: ExecState.EXEC_COMPLETED, deletionState: DeletionState.DELETION_PENDING },
      { uid: middle, parentUid: top, forkSeq: 4n, lastSeq: 6n, deletionState: DeletionState.DELETION_PENDING },
      { uid: leaf, parentUid: middle, forkSeq: 5n, lastSeq: 6n, deletionState: DeletionState.DELETION_ACTIVE },
    ]);
    expect((await ask(top)).rows).toEqual(rows);
  });

  it("says which members were reclaimed and live on for their children only", async () => {
    const { host, fork, root, ask } = bench();
    const top = await root();
    const [child] = await fork(top, 2);
    await host.controller.delete(top, undefined);
    await host.journal.reclaim(top);
    const { rows } = await ask(child!);
    expect(rows).toMatchObject([
      { uid: top, name: "root", reclaimed: true, deletionState: DeletionState.DELETION_PENDING },
      { uid: child, reclaimed: false },
    ]);
  });

  it("begins with the uid of an ancestor of which nothing else is left", async () => {
    const reclaimed = new Set<string>();
    const { fork, root, ask } = bench({ reclaimed });
    const top = await root();
    await fork(top, 2, 2);
    const [child] = await fork(top, 4);
    reclaimed.add(top);
    const { rows } = await ask(child!);
    expect(drawn(rows)).toEqual(["@0", "  n1@2", "  n2@2", "  n3@4"]);
    expect(rows[0]).toMatchObject({ uid: top, reclaimed: true });
    await expect(ask(top)).rejects.toMatchObject({ code: "not_found" });
  });

  it("is bounded and says so; the session that was asked for and its ancestors come first", async () => {
    const { fork, root, ask } = bench();
    const top = await root();
    await fork(top, 2, 120);
    let last = top;
    for (let generation = 0; generation < 5; generation++) [last] = (await fork(last, 0)) as [SessionUid];
    const whole = await ask(last);
    expect([whole.rows.length, whole.truncated]).toEqual([126, false]);
    const exact = await ask(last, 126);
    expect([exact.rows.length, exact.truncated]).toEqual([126, false]);
    for (const rowsMax of [125, 7, 6]) {
      const cut = await ask(last, rowsMax);
      expect([cut.rows.length, cut.truncated]).toEqual([rowsMax, true]);
      expect(cut.rows.filter(({ depth }) => depth !== 1).map(({ depth }) => depth)).toEqual([0, 2, 3, 4, 5]);
    }
    const short = await ask(last, 2);
    expect([drawn(short.rows), short.truncated]).toEqual([["n124@7", "  n125@8"], true]);
  });

  it("follows a hundred generations", async () => {
    const { fork, root, ask } = bench();
    let last = await root();
    for (let generation = 0; generation < 100; generation++) [last] = (await fork(last, 0)) as [SessionUid];
    expect((await ask(last)).rows.map(({ depth }) => depth)).toEqual(Array.from({ length: 101 }, (_, depth) => depth));
  });

  it("is refused for an unknown session, for a wrong number, and to whoever may not list", async () => {
    const { root, ask } = bench();
    await expect(ask("nobody")).rejects.toMatchObject({ code: "not_found", field: "session" });
    await expect(ask(await root(), -1)).rejects.toMatchObject({ code: "invalid_argument", field: "rows_max" });
    const authorizer: Authorizer = {
      authorize: async (_, action) => (action === "session.list" ? { kind: "denied", reason: "no" } : { kind: "allowed" }),
    };
    const denied = bench({ authorizer });
    await expect(denied.ask(await denied.root())).rejects.toMatchObject({ code: "permission_denied" });
  });
});
