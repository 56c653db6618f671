import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync, zstdDecompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command } from "../../e2e/support/command.ts";
import { SILENT_LOG } from "../base/ports.ts";
import { createClient, type Client } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { newKeyPair, signerOf } from "../node/index.ts";
import { startServer, type RunningServer } from "../server/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";

/** Export, import, verify and keys through real processes, between two real servers. */

const key = newKeyPair();
let folder: TemporaryFolder;
let from: RunningServer;
let to: RunningServer;
let client: Client;
let uid: string;

beforeAll(async () => {
  folder = new TemporaryFolder();
  const config = { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" } } as const;
  from = await startServer({ ...config, signer: signerOf(key.privatePem, "key") }, { log: SILENT_LOG });
  to = await startServer(config, { log: SILENT_LOG });
  client = createClient({ transport: createNodeTransport({ address: from.url }) });
  const turn = client.sessions.exec({ inputs: "hello" });
  await turn.finish();
  uid = turn.sessionUid ?? "";
  await client.sessions.fork(uid, { atSeq: 2 });
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await Promise.all([from, to].map((server) => server.shutdown({ graceMs: 0 })));
  folder[Symbol.dispose]();
});

const path = (name: string): string => join(folder.path, name);
const at = (server: RunningServer) => ({ env: { HOLDFAST_SERVER: server.url } });
/** Nothing to ask: a command that needs a server fails. */
const alone = { env: { HOLDFAST_SERVER: "http://127.0.0.1:1" } };
const ask = (...args: string[]) => command(args, at(from));
const offline = (...args: string[]) => command(args, alone);

describe("holdfast export and verify", () => {
  it("write a session to a file that verifies without a server, in every form", async () => {
    const files = { "a.jsonl": (bytes: Buffer) => bytes, "a.jsonl.gz": gunzipSync, "a.hfx.zst": zstdDecompressSync };
    for (const [name, open] of Object.entries(files)) {
      expect(await ask("export", uid, "-o", path(name))).toEqual({
        exitCode: 0,
        stdout: `exported  6 records in 1 session  ${path(name)}\n`,
        stderr: "",
      });
      expect(
        open(readFileSync(path(name)))
          .subarray(0, 9)
          .toString("latin1"),
      ).toMatch(name.includes("hfx") ? /^\x89HFX/ : /^\{"kind":/);
      const verified = await offline("verify", path(name));
      expect([verified.exitCode, verified.stderr]).toEqual([0, ""]);
      expect(verified.stdout).toMatch(
        /^intact {2}6 records in 1 session\nintact {2}session \S+ {2}6 records {2}head 6 {2}sha256 [0-9a-f]{64} {2}signed by [0-9a-f]{16} at /,
      );
      expect(existsSync(`${path(name)}.part`)).toBe(false);
    }
    expect(statSync(path("a.jsonl")).mode & 0o777).toBe(0o600);
  });

  it("write to standard output, and read from standard input", async () => {
    const { stdout, exitCode } = await ask("export", uid, "--family");
    expect(exitCode).toBe(0);
    expect((await command(["verify", "-"], { ...alone, stdin: stdout })).stdout).toMatch(/^intact {2}7 records in 2 sessions\n/);
    const json = JSON.parse((await command(["verify", "-", "--json"], { ...alone, stdin: stdout })).stdout) as object;
    expect(json).toMatchObject({
      intact: true,
      records: "7",
      sessions: [{ uid, head_seq: "6", signature: { key_id: expect.stringMatching(/^[0-9a-f]{16}$/) as string } }, {}],
      faults: [],
    });
    expect(await ask("export", uid, "--json")).toMatchObject({ exitCode: 2 });
  });

  it("leave nothing behind when they fail", async () => {
    expect(await ask("export", "nobody", "-o", path("none.jsonl"))).toMatchObject({ exitCode: 3, stdout: "" });
    expect([existsSync(path("none.jsonl")), existsSync(path("none.jsonl.part"))]).toEqual([false, false]);
    writeFileSync(path("kept.jsonl"), "kept");
    await ask("export", "nobody", "-o", path("kept.jsonl"));
    expect(readFileSync(path("kept.jsonl"), "utf8")).toBe("kept");
    expect(await ask("export", uid, "-o", path("no/folder/x"))).toMatchObject({
      exitCode: 2,
      stderr: "holdfast: --output: must name a file that can be written\n",
    });
  });

  it("say in words what is wrong, with exit code 1", async () => {
    writeFileSync(path("keys.txt"), `# ours\n${key.publicPem}`);
    await ask("export", uid, "-o", path("b.jsonl"));
    const lines = readFileSync(path("b.jsonl"), "utf8").trimEnd().split("\n");
    const verdict = async (changed: readonly string[], ...flags: string[]) => {
      const { stdout, exitCode } = await command(["verify", "-", ...flags], { ...alone, stdin: `${changed.join("\n")}\n` });
      return [exitCode, stdout];
    };
    const trusted = ["--trusted-keys", path("keys.txt")];
    expect(await verdict(lines, ...trusted)).toEqual([0, expect.stringMatching(/, trusted\n$/)]);
    const edited = lines.map((line) => line.replace("echo:hello", "echo:hullo"));
    expect(await verdict(edited)).toEqual([
      1,
      expect.stringMatching(/record \d breaks the chain: its content is not what was hashed\n {10}expected [0-9a-f]{64}\n {10}found/),
    ]);
    expect(await verdict(lines.slice(0, -2), ...trusted)).toEqual([1, expect.stringMatching(/file is cut off: its end is missing/)]);
    const unsigned = lines.map((line) => (line.startsWith('{"kind":"head"') ? line.replace(/,"time".*/, "}") : line));
    expect(await verdict(unsigned)).toEqual([0, expect.stringMatching(/^intact/)]);
    expect(await verdict(unsigned, ...trusted)).toEqual([1, expect.stringMatching(/its head has no signature/)]);
    writeFileSync(path("others.txt"), "0123456789abcdef\n");
    expect(await verdict(lines, "--trusted-keys", path("others.txt"))).toEqual([
      1,
      expect.stringMatching(/which is not one of the trusted keys/),
    ]);
    const replayed = (await ask("replay", uid, "--json")).stdout;
    expect(await command(["verify", "-", ...trusted], { ...alone, stdin: replayed })).toMatchObject({
      exitCode: 1,
      stderr: "holdfast: FILE: no trusted key has signed it: a journal alone has no head that could be signed\n",
    });
  });

  it("find out by a head that was kept that a whole file was cut", async () => {
    const { stdout: head } = await ask("head", uid, "--json");
    writeFileSync(path("head.json"), head);
    expect((await ask("head", uid)).stdout).toMatch(/^head 6 {2}sha256 [0-9a-f]{64} {2}signed by [0-9a-f]{16} at \d{4}-/);
    await ask("export", uid, "-o", path("c.jsonl"));
    expect((await offline("verify", path("c.jsonl"), "--head", path("head.json"))).exitCode).toBe(0);
    const child = (await client.journal.lineage(uid)).rows[1]?.uid ?? "";
    const other = (await ask("head", child, "--json")).stdout.replace(`"session":"${child}"`, `"session":"${uid}"`);
    writeFileSync(path("forged.json"), other);
    expect(await offline("verify", path("c.jsonl"), "--head", path("forged.json"))).toMatchObject({
      exitCode: 2,
      stderr: "holdfast: --head: holds a head whose signature is wrong\n",
    });
    expect(await command(["head", uid], at(to))).toMatchObject({ exitCode: 3 });
  });

  it("read what they read before: records on lines, and a document with records", async () => {
    const vector = join(import.meta.dirname, "..", "canon", "vectors", "journal-hello.json");
    expect((await offline("verify", vector)).stdout).toMatch(/^intact {2}4 records {2}head 4/);
    const { records } = JSON.parse(readFileSync(vector, "utf8")) as { records: object[] };
    const stdin = records.map((record) => JSON.stringify(record)).join("\n");
    expect((await command(["verify", "-"], { ...alone, stdin })).stdout).toMatch(/^intact {2}4 records {2}head 4/);
    expect((await command(["verify", "-"], { ...alone, stdin: JSON.stringify(records) })).exitCode).toBe(0);
    expect((await command(["verify", "-"], { ...alone, stdin: "{}" })).exitCode).toBe(1);
    expect(await command(["verify", "-", "--head", path("head.json")], { ...alone, stdin })).toMatchObject({ exitCode: 2 });
    expect(await offline("verify", uid, "--trusted-keys", path("keys.txt"))).toMatchObject({ exitCode: 2 });
  });

  it("say that a file is damaged where it is compressed and cannot be read", async () => {
    await ask("export", uid, "-o", path("d.hfx.gz"));
    const damaged = readFileSync(path("d.hfx.gz"));
    damaged[damaged.length >> 1] = (damaged[damaged.length >> 1] ?? 0) ^ 0xff;
    writeFileSync(path("d.hfx.gz"), damaged);
    const { exitCode, stdout, stderr } = await offline("verify", path("d.hfx.gz"));
    expect([exitCode === 0, `${stdout}${stderr}`]).toEqual([false, expect.stringMatching(/damaged|cut off|broken/)]);
    expect(await offline("verify", "--file", path("nothing"))).toMatchObject({
      exitCode: 2,
      stderr: "holdfast: FILE: must be a file that can be read\n",
    });
  });
});

describe("holdfast import", () => {
  it("takes an export over, says what it did, and repeats it without harm", async () => {
    await ask("export", uid, "--family", "-o", path("family.hfx.gz"));
    const child = (await client.journal.lineage(uid)).rows[1]?.uid;
    const answer = (words: string, added: string) =>
      `session ${uid}  ${words}  last seq 6\nsession ${child}  ${words}  last seq 3\n${added} added\n`;
    expect(await command(["import", path("family.hfx.gz")], at(to))).toEqual({
      exitCode: 0,
      stdout: answer("created", "7 records"),
      stderr: "",
    });
    expect((await command(["import", path("family.hfx.gz")], at(to))).stdout).toBe(answer("unchanged", "0 records"));
    const { stdout: again } = await command(["export", uid, "--family"], at(to));
    expect((await command(["verify", "-"], { ...alone, stdin: again })).stdout).toMatch(/^intact {2}7 records in 2 sessions\n/);
    expect((await command(["verify", uid], at(to))).stdout).toBe((await ask("verify", uid)).stdout);
  });

  it("goes from one server to another through a pipe, also over JSON", async () => {
    const turn = client.sessions.exec({ inputs: "more" });
    await turn.finish();
    const { stdout: file } = await ask("export", turn.sessionUid ?? "");
    const { stdout, exitCode } = await command(["import", "-", "--json"], { ...at(to), stdin: file });
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([
      0,
      { sessions: [{ uid: turn.sessionUid, outcome: "OUTCOME_CREATED" }], records_added: "6" },
    ]);
  });

  it("sends nothing that is broken, and says what is", async () => {
    const { stdout } = await ask("export", uid);
    writeFileSync(path("broken.jsonl"), gzipSync(stdout.replace("echo:hello", "echo:hullo")));
    const refused = await command(["import", path("broken.jsonl")], alone);
    expect([refused.exitCode, refused.stdout]).toEqual([1, expect.stringMatching(/^broken/)]);
    const piped = await command(["import", "-"], { ...at(to), stdin: stdout.replace("echo:hello", "echo:hullo") });
    expect([piped.exitCode, piped.stderr]).toEqual([2, expect.stringMatching(/breaks its chain at record \d/)]);
  });
});

describe("holdfast keygen", () => {
  it("makes a key that only its owner can read, never over another one", async () => {
    const made = await offline("keygen", path("own.pem"));
    expect([made.exitCode, made.stdout]).toEqual([0, expect.stringMatching(/^key [0-9a-f]{16} {2}private in /)]);
    expect(statSync(path("own.pem")).mode & 0o777).toBe(0o600);
    expect(readFileSync(path("own.pem.pub"), "utf8")).toMatch(/^-----BEGIN PUBLIC KEY-----\n/);
    expect(`${made.stdout}${made.stderr}`).not.toContain(readFileSync(path("own.pem"), "utf8").split("\n")[1]);
    const before = readFileSync(path("own.pem"), "utf8");
    expect(await offline("keygen", path("own.pem"))).toMatchObject({ exitCode: 4, stdout: "" });
    expect(readFileSync(path("own.pem"), "utf8")).toBe(before);
    const { stdout } = await offline("keygen", path("another.pem"), "--json");
    const { key_id: keyId, fingerprint } = JSON.parse(stdout) as { key_id: string; fingerprint: string };
    expect(fingerprint.startsWith(keyId)).toBe(true);
  });

  it("makes what a server signs with and a verifier trusts", async () => {
    await offline("keygen", path("server.pem"));
    const env = { HOLDFAST_SIGNING_KEY_FILE: path("server.pem"), HOLDFAST_DATA: path("data"), HOLDFAST_SERVER: "embedded" };
    const { stdout: turn } = await command(["exec", "--input", "hello", "--json"], { env });
    const session = /"uid":"([^"]+)"/.exec(turn)?.[1] ?? "";
    const { stdout: file } = await command(["export", session], { env });
    const verified = await command(["verify", "-", "--trusted-keys", path("server.pem.pub")], { ...alone, stdin: file });
    expect([verified.exitCode, verified.stdout]).toEqual([0, expect.stringMatching(/, trusted\n$/)]);
  });
});
