import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseTrustedKeys, signedBytes } from "../archive/index.ts";
import { HoldfastError } from "../base/index.ts";
import {
  ExportRequestSchema,
  ImportedSession_Outcome as Outcome,
  ImportRequestSchema,
  SignHeadRequestSchema,
  type ImportRequest,
} from "../gen/holdfast/v1/export_pb.ts";
import type { JournalStore } from "../journal/index.ts";
import { newKeyPair, nodeSignatures, signerOf } from "../node/index.ts";
import type { Authorizer } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { cut, itemsOf, verdictOn } from "../testing/archive-files.ts";
import { harnessCatalog, seededPorts, testDigest, TestHost } from "../testing/index.ts";
import { append, created, deletion, forked, forkRequest, output, uid } from "../testing/journal-conformance/fixtures.ts";
import { ALLOW_ALL } from "./access.ts";
import type { CallContext, JournalService } from "./contract.ts";
import { createJournalService, type JournalServiceOptions } from "./journal.ts";

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };
const key = newKeyPair();

function bench(options: Partial<JournalServiceOptions> = {}) {
  const ports = seededPorts(3);
  const journal = createMemoryStore(ports);
  const host = new TestHost({ journal, ports, harnesses: {} });
  onTestFinished(() => host[Symbol.asyncDispose]());
  const service = createJournalService({
    journal,
    controller: host.controller,
    harnesses: harnessCatalog({}),
    authorizer: ALLOW_ALL,
    ports,
    signatures: nodeSignatures,
    ...options,
  });
  return { journal, service, clock: ports.clock };
}

/** `a`, and `b` that shares its first record. */
async function fill(journal: JournalStore): Promise<void> {
  await created(journal, "a", { project: "p" });
  await append(journal, "a", output("one"), output("two"));
  forked(await journal.fork(await forkRequest(journal, "a", 1, "b")));
}

async function exportOf(service: JournalService, session: string, family = false, form: "binary" | "lines" = "binary") {
  const request = create(ExportRequestSchema, { session, family });
  return Buffer.concat(await Array.fromAsync(service.export(request, context, form)));
}

const OUTCOMES: Readonly<Record<number, string>> = {
  [Outcome.CREATED]: "CREATED",
  [Outcome.CONTINUED]: "CONTINUED",
  [Outcome.UNCHANGED]: "UNCHANGED",
  [Outcome.PREFIX]: "PREFIX",
};

async function* requests(file: Uint8Array, pieceLength = 100): AsyncGenerator<ImportRequest, void, undefined> {
  for await (const data of cut(file, pieceLength)) yield create(ImportRequestSchema, { data });
}

function refusing(action: string, session: string): Authorizer {
  return {
    authorize: async (_, asked, subject) =>
      asked === action && subject.session === session ? { kind: "denied", reason: "not yours" } : { kind: "allowed" },
  };
}

describe("Export", () => {
  it("gives a file that verifies, in both forms, in pieces of a bounded size", async () => {
    const { journal, service } = bench({ transferLimits: { pieceBytesMax: 64 } });
    await fill(journal);
    for (const form of ["binary", "lines"] as const) {
      const pieces = await Array.fromAsync(service.export(create(ExportRequestSchema, { session: "b" }), context, form));
      expect(pieces.every(({ length }) => length > 0 && length <= 64)).toBe(true);
      expect(verdictOn(Buffer.concat(pieces), { signatures: nodeSignatures })).toMatchObject({ isIntact: true, records: 2 });
    }
    const { sessions } = verdictOn(await exportOf(service, "b", true), { signatures: nodeSignatures });
    expect(sessions.map(({ facts }) => facts.seed.uid)).toEqual(["a", "b"]);
  });

  it("signs heads where there is a key", async () => {
    const { journal, service, clock } = bench({ signer: signerOf(key.privatePem, "key") });
    await fill(journal);
    clock.advance(1_000);
    const trusted = parseTrustedKeys(key.publicPem, testDigest);
    const { isIntact, sessions } = verdictOn(await exportOf(service, "a"), { signatures: nodeSignatures, trusted });
    expect([isIntact, sessions[0]?.trust]).toMatchObject([true, { kind: "signed", isTrusted: true, timeMs: clock.nowMs() }]);
  });

  it("is refused for unknown sessions, and for any session of it that the caller may not have", async () => {
    const { journal } = bench();
    await fill(journal);
    const answer = (service: JournalService, session: string, family = false) =>
      exportOf(service, session, family).catch((error: unknown) => error);
    const open = bench();
    expect(await answer(open.service, "nobody")).toMatchObject({ code: "not_found", field: "session" });
    expect(await answer(open.service, "")).toMatchObject({ code: "invalid_argument" });
    for (const [session, denied, family] of [
      ["a", "a", false],
      ["b", "a", false],
      ["a", "b", true],
    ] as const) {
      const { service, journal: own } = bench({ authorizer: refusing("session.export", denied) });
      await fill(own);
      expect(await answer(service, session, family)).toMatchObject({ code: "permission_denied", message: "not yours" });
    }
  });
});

describe("Import", () => {
  it("says of each session what became of it", async () => {
    const from = bench();
    await fill(from.journal);
    const to = bench();
    const told = async (file: Uint8Array) => {
      const { sessions, recordsAdded } = await to.service.import(requests(file), context);
      return [
        ...sessions.map(({ uid: session, outcome, lastSeq }) => `${session} ${OUTCOMES[outcome]} ${lastSeq}`),
        `${recordsAdded} added`,
      ];
    };
    expect(await told(await exportOf(from.service, "b"))).toEqual(["a PREFIX 1", "b CREATED 2", "2 added"]);
    expect(await told(await exportOf(from.service, "a", true, "lines"))).toEqual(["a CREATED 2", "b UNCHANGED 2", "1 added"]);
    await append(from.journal, "a", output("three"));
    expect(await told(await exportOf(from.service, "a"))).toEqual(["a CONTINUED 3", "1 added"]);
    expect(await to.service.import(requests(await exportOf(from.service, "a")), context)).toMatchObject({
      sessions: [{ headHash: (await from.journal.get(uid("a")))?.projection.headHash }],
    });
  });

  it("asks for every session whether its caller may import it, before anything is taken", async () => {
    const from = bench();
    await fill(from.journal);
    const { service, journal } = bench({ authorizer: refusing("session.import", "b") });
    const refused = service.import(requests(await exportOf(from.service, "a", true)), context);
    await expect(refused).rejects.toMatchObject({ code: "permission_denied" });
    expect((await journal.list({ limit: 9, includeDeleted: true })).rows).toEqual([]);
  });

  it("takes no more bytes than it may", async () => {
    const from = bench();
    await fill(from.journal);
    const file = await exportOf(from.service, "a");
    const exact = bench({ transferLimits: { importBytesMax: file.length } });
    expect((await exact.service.import(requests(file), context)).recordsAdded).toBe(2n);
    const less = bench({ transferLimits: { importBytesMax: file.length - 1 } });
    await expect(less.service.import(requests(file), context)).rejects.toMatchObject({ code: "resource_exhausted", field: "file" });
    expect((await less.journal.list({ limit: 9, includeDeleted: true })).rows).toEqual([]);
  });

  it("does not wait for ever for its sender", async () => {
    const from = bench();
    await fill(from.journal);
    const file = await exportOf(from.service, "a");
    const { service, clock, journal } = bench({ transferLimits: { importIdleMs: 5_000 } });
    const stalled = Promise.withResolvers<void>();
    async function* slow(): AsyncGenerator<ImportRequest, void, undefined> {
      yield create(ImportRequestSchema, { data: file.subarray(0, 300) });
      stalled.resolve();
      await new Promise(() => undefined);
    }
    const importing = service.import(slow(), context).catch((error: unknown) => error);
    await stalled.promise;
    while (clock.pending === 0) await new Promise(setImmediate);
    clock.advance(5_000);
    expect(await importing).toMatchObject({ code: "deadline_exceeded", field: "file" });
    expect((await journal.list({ limit: 9, includeDeleted: true })).rows).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it("refuses signed heads where it cannot check them", async () => {
    const from = bench({ signer: signerOf(key.privatePem, "key") });
    await fill(from.journal);
    const to = bench({ signatures: undefined });
    await expect(to.service.import(requests(await exportOf(from.service, "a")), context)).rejects.toMatchObject({
      code: "failed_precondition",
    });
  });

  it("and exports are as many at once as the host allows", async () => {
    const { service, journal } = bench({ transferLimits: { transfersMax: 1 } });
    await fill(journal);
    const running = service.export(create(ExportRequestSchema, { session: "a" }), context);
    await running.next();
    await expect(service.import(requests(new Uint8Array()), context)).rejects.toMatchObject({ code: "resource_exhausted" });
    await expect(exportOf(service, "a")).rejects.toMatchObject({ code: "resource_exhausted" });
    await running.return();
    expect(itemsOf(await exportOf(service, "a")).length).toBeGreaterThan(2);
  });
});

describe("SignHead", () => {
  it("signs the head that the session has now", async () => {
    const { journal, service, clock } = bench({ signer: signerOf(key.privatePem, "key") });
    await fill(journal);
    const head = await service.signHead(create(SignHeadRequestSchema, { session: "a" }), context);
    expect(head).toMatchObject({ session: "a", seq: 2n, contentHash: (await journal.get(uid("a")))?.projection.headHash });
    expect(nodeSignatures.isSignature(head.publicKey, signedBytes(head), head.signature)).toBe(true);
    expect(Buffer.from(signedBytes(head)).toString()).toBe(
      `{"content_hash":"${head.contentHash}","seq":"2","session":"a","time":"${new Date(clock.nowMs()).toISOString().replace(".000", "")}",` +
        `"type":"holdfast.v1.SignedHead"}`,
    );
  });

  it("is refused without a key, for unknown sessions, and for what is no whole session", async () => {
    const { service, journal } = bench({ signer: signerOf(key.privatePem, "key") });
    await fill(journal);
    await append(journal, "a", deletion());
    await journal.reclaim(uid("a"));
    const answer = (session: string) =>
      service.signHead(create(SignHeadRequestSchema, { session }), context).catch((error: unknown) => error);
    expect(await answer("nobody")).toMatchObject({ code: "not_found" });
    expect(await answer("a")).toMatchObject({ code: "failed_precondition", field: "session" });
    const without = bench();
    await fill(without.journal);
    const refused = await without.service
      .signHead(create(SignHeadRequestSchema, { session: "a" }), context)
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "failed_precondition" });
    expect(refused).toBeInstanceOf(HoldfastError);
  });
});
