/**
 * Disks as they fail: full, read-only, refusing a write. Each runs in a process of its own, in a mount namespace of its own
 * where it needs one, and tells as JSON what it met.
 */

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { recordsOf, requireChain } from "../../testing/journal-conformance/fixtures.ts";
import { testDigest, VirtualClock } from "../../testing/ports.ts";
import { openSqliteStore } from "./index.ts";

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder("disk");
});
afterEach(() => folder[Symbol.dispose]());

const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);

/** What every script begins with. `attempt` tells the code of a HoldfastError and rethrows anything else. */
const PREAMBLE = `
  import { rmSync, writeFileSync } from "node:fs";
  import { openSqliteStore } from ${url("./index.ts")};
  import { nodeDigest, systemClock } from ${url("../../node/index.ts")};
  import { append, appendAs, created, fence, output, recordsOf, requireChain } from ${url("../../testing/journal-conformance/fixtures.ts")};
  const [folder, writer] = process.argv.slice(1);
  const open = () => openSqliteStore({ folder, writer, clock: systemClock, digest: nodeDigest });
  async function attempt(call) {
    try {
      await call();
      return "ok";
    } catch (error) {
      if (error.name !== "HoldfastError") throw error;
      return error.code + ": " + error.message;
    }
  }
  async function appendUntilFailure(store, bytes) {
    for (let made = 0; ; made++) {
      const answer = await attempt(() => append(store, "a", output("x".repeat(bytes))));
      if (answer !== "ok") return { made, answer };
    }
  }
  const tell = (facts) => console.log(JSON.stringify(facts));
`;

interface Told {
  readonly status: number | null;
  readonly stderr: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Runs a script with a folder and a writer, after the shell commands of `setUp`. */
function tellOf(script: string, writer: string, setUp: string, inNamespace: boolean): Told {
  const node = [process.execPath, "--input-type=module", "-e", PREAMBLE + script, folder.path, writer];
  const shell = ["sh", "-c", `${setUp} && exec "$@"`, "sh", ...node];
  const [command = "", ...rest] = inNamespace ? [...NAMESPACE, ...shell] : shell;
  const { status, stdout, stderr } = spawnSync(command, rest, { encoding: "utf8", env: { ...process.env, FOLDER: folder.path } });
  return { status, stderr, facts: stdout === "" ? {} : (JSON.parse(stdout) as Told["facts"]) };
}

/** A mount namespace of one's own; whoever is not root becomes root in a user namespace. */
const NAMESPACE = process.getuid?.() === 0 ? ["unshare", "--mount"] : ["unshare", "--user", "--map-root-user", "--mount"];
const MOUNTS = spawnSync(NAMESPACE[0]!, [...NAMESPACE.slice(1), "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0;

describe.runIf(MOUNTS).each(["inline", "worker"] as const)("a disk that is full, written %s", (writer) => {
  const SMALL_DISK = `mount -t tmpfs -o size=1m none "$FOLDER"`;

  it("refuses changes, keeps what it acknowledged, and takes changes again once there is room, without being opened again", () => {
    const script = `
      writeFileSync(folder + "/ballast", new Uint8Array(300_000));
      let store = await open();
      await created(store, "a");
      const full = await appendUntilFailure(store, 10_000);
      const ready = await attempt(() => store.ready());
      const readable = (await recordsOf(store, "a")).length;
      rmSync(folder + "/ballast");
      const readyAgain = await attempt(() => store.ready());
      const again = await attempt(() => append(store, "a", output("again")));
      const closed = await attempt(() => store[Symbol.asyncDispose]());
      store = await open();
      const records = await recordsOf(store, "a");
      requireChain(records);
      await store[Symbol.asyncDispose]();
      tell({ full, ready, readable, readyAgain, again, closed, kept: records.length });
    `;
    const { status, stderr, facts } = tellOf(script, writer, SMALL_DISK, true);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const full = facts.full as { made: number; answer: string };
    expect(full.made).toBeGreaterThan(5);
    expect(full.answer).toMatch(/^resource_exhausted: journal: the disk/);
    expect(facts).toMatchObject({ readable: full.made, readyAgain: "ok", again: "ok", closed: "ok", kept: full.made + 1 });
    expect(facts.ready).toMatch(/^resource_exhausted/);
  });

  it("cannot be opened where there is no room for a journal, and says so", () => {
    const script = `
      writeFileSync(folder + "/ballast", new Uint8Array(1_044_480));
      const first = await attempt(open);
      const second = await attempt(open);
      rmSync(folder + "/ballast");
      const third = await attempt(async () => (await open())[Symbol.asyncDispose]());
      tell({ first, second, third });
    `;
    const { status, stderr, facts } = tellOf(script, writer, SMALL_DISK, true);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(facts.first).toMatch(/^resource_exhausted/);
    expect(facts.second).toBe(facts.first);
    expect(facts.third).toBe("ok");
  });
});

describe.runIf(MOUNTS)("a disk that is read-only", () => {
  const seal = (path: string) => `mount --bind "${path}" "${path}" && mount -o remount,ro,bind "${path}"`;
  const makeJournal = async () => {
    await (await openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest }))[Symbol.asyncDispose]();
  };

  it.each([
    ["an empty folder", async () => undefined, ""],
    ["a folder with a journal", makeJournal, ""],
    ["a journal's file in a folder that is not", makeJournal, "/journal.sqlite"],
  ])("is FAILED_PRECONDITION: %s", async (_, prepare, sealed) => {
    await prepare();
    const script = `tell({ answer: await attempt(open) });`;
    const { status, stderr, facts } = tellOf(script, "inline", seal(`${folder.path}${sealed}`), true);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(facts.answer).toMatch(/^failed_precondition: .*writable/);
  });

  it("is FAILED_PRECONDITION where the folder cannot even be made", () => {
    mkdirSync(join(folder.path, "sealed"));
    const below = `folder + "/sealed/data"`;
    const script = `tell({ answer: await attempt(() => openSqliteStore({ folder: ${below}, clock: systemClock, digest: nodeDigest })) });`;
    const { facts } = tellOf(script, "inline", seal(join(folder.path, "sealed")), true);
    expect(facts.answer).toMatch(/^failed_precondition: data folder: cannot be made here/);
  });
});

describe.each(["inline", "worker"] as const)("a disk that refuses a write, written %s", (writer) => {
  it("ends all changes until the journal is opened again; reading goes on, and what was acknowledged is there", async () => {
    const script = `
      const store = await open();
      await created(store, "a");
      const refused = await appendUntilFailure(store, 10_000);
      const small = await attempt(() => append(store, "a", output("small")));
      const ready = await attempt(() => store.ready());
      const records = await recordsOf(store, "a");
      requireChain(records);
      tell({ refused, small, ready, readable: records.length });
      await attempt(() => store[Symbol.asyncDispose]());
    `;
    // No file may grow beyond 300 KiB: the system answers a longer one with an error that is none of "full".
    const { status, stderr, facts } = tellOf(script, writer, "ulimit -f 600", false);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const { made, answer } = facts.refused as { made: number; answer: string };
    expect(made).toBeGreaterThan(5);
    expect(answer).toMatch(/^unavailable: journal: the disk failed/);
    expect(facts).toMatchObject({ small: answer, ready: answer, readable: made });

    await using store = await openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });
    const kept = await recordsOf(store, "a");
    requireChain(kept);
    expect(kept.length).toBe(made);
  });
});

describe("a folder that another process has", () => {
  it("is UNAVAILABLE until that process ends, even by kill -9", async () => {
    const script = `${PREAMBLE} await open(); tell({ open: true }); setInterval(() => undefined, 1_000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script, folder.path, "inline"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    const open = () => openSqliteStore({ folder: folder.path, clock: new VirtualClock(), digest: testDigest });
    await expect(open()).rejects.toMatchObject({
      code: "unavailable",
      message: "data folder: another running process has it; stop that one, or name another folder (--data)",
    });
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    await (await open())[Symbol.asyncDispose]();
  });
});
