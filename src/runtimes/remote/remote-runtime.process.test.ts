import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { connect as connectTcp, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { fenceOf, sessionUidOf } from "../../base/index.ts";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { createPlacedHarness } from "../../placement/index.ts";
import { ComputeState, type HarnessEntry, type Runtime } from "../../spi/index.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { drive, saidBy, until } from "../../testing/harness-programs/driving.ts";
import { startPeer, type Peer } from "../../testing/harness-programs/peer.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createRemoteRuntime, type RemoteRuntimeOptions } from "./index.ts";

let bundle: BundledProgram;
const peers: Peer[] = [];
const open: Runtime[] = [];

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
});

afterAll(() => bundle[Symbol.dispose]());

afterEach(async () => {
  for (const runtime of open.splice(0)) await runtime[Symbol.asyncDispose]();
  for (const peer of peers.splice(0)) await peer.kill();
});

async function peerAt(address: string, options?: Parameters<typeof startPeer>[2]): Promise<Peer> {
  const peer = await startPeer(bundle.file, address, options);
  peers.push(peer);
  return peer;
}

function runtimeTo(address: string, options: Partial<RemoteRuntimeOptions> = {}): Runtime {
  const runtime = createRemoteRuntime({ address, ports: { clock: systemClock, random: cryptoRandom }, ...options });
  open.push(runtime);
  return runtime;
}

const incarnate = (runtime: Runtime, uid = "session") =>
  runtime.create({ sessionUid: sessionUidOf(uid), harness: "test", fence: fenceOf(1) });

const attached = async (runtime: Runtime, uid?: string) => runtime.attach(await incarnate(runtime, uid));

const errorOf = (promise: Promise<unknown>): Promise<{ code: string; message: string }> =>
  promise.then(
    () => ({ code: "none", message: "" }),
    (error: unknown) => error as { code: string; message: string },
  );

/** What the controller's compute is asked with, for one turn of a placed harness. */
async function attachTo(entry: HarnessEntry) {
  const descriptor = await entry.describe();
  const options = { sessionUid: sessionUidOf("session"), fence: fenceOf(1), identity: undefined, compute: undefined };
  return entry.attach({ ...options, executionId: "execution" as never, descriptor, signal: new AbortController().signal });
}

describe.each(["serve", "contract"] as const)("a harness at an address: %s", (how) => {
  it("describes itself and runs turns, over a port and over a unix socket", async () => {
    using folder = new TemporaryFolder();
    for (const address of ["127.0.0.1:0", `unix://${folder.path}/harness.sock`]) {
      const peer = await peerAt(address, { how });
      const runtime = runtimeTo(peer.address);
      expect(await runtime.describe()).toMatchObject({ id: "behaving", version: "1" });
      const harness = await attached(runtime);
      expect(await saidBy(harness, "echo hello")).toBe("hello");
      expect(await saidBy(harness, "chat")).toBe("");
      await expect(saidBy(harness, "fail")).rejects.toMatchObject({ name: "HarnessFailure" });
    }
  });

  it("interrupts its turns when the peer is killed, and is reached again when another stands in its place", async () => {
    const peer = await peerAt("127.0.0.1:0", { how });
    const runtime = runtimeTo(peer.address);
    const turns = await Promise.all(
      ["a", "b", "c"].map(async (uid) => {
        const turn = drive(await attached(runtime, uid), "wait");
        await turn.speaks;
        return turn;
      }),
    );
    await peer.kill();
    for (const { said } of turns) {
      expect(await errorOf(said)).toMatchObject({ code: "unavailable", message: expect.stringContaining("can be resumed") as string });
    }
    await peerAt(peer.address, { how });
    expect(await saidBy(await attached(runtime), "echo again")).toBe("again");
  });

  it("is caught where another version stands in its place", async () => {
    const peer = await peerAt("127.0.0.1:0", { how });
    const runtime = runtimeTo(peer.address);
    const entry = createPlacedHarness({ name: "test", source: "static", runtime, sandboxed: false });
    const before = await entry.describe();
    expect(await saidBy((await attachTo(entry)).harness, "echo one")).toBe("one");
    await peer.kill();
    await peerAt(peer.address, { how, version: "2" });
    const error = await errorOf(attachTo(entry));
    expect(error).toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("changed after the turn was planned") as string,
    });
    expect(before.version).toBe("1");
    expect(await entry.describe()).toMatchObject({ version: "2" });
    expect(await saidBy((await attachTo(entry)).harness, "echo two")).toBe("two");
  });

  it("says that nobody answers where nobody does, and later that somebody does", async () => {
    const peer = await peerAt("127.0.0.1:0", { how });
    await peer.kill();
    const runtime = runtimeTo(peer.address);
    for (let attempt = 0; attempt < 2; attempt++) {
      const error = await errorOf(runtime.describe());
      expect(error).toEqual(expect.objectContaining({ code: "unavailable", message: "harness: nobody answers at its address" }));
    }
    await peerAt(peer.address, { how });
    expect(await runtime.describe()).toMatchObject({ id: "behaving" });
  });
});

describe("a connection", () => {
  /** A port that passes bytes on to the peer, and counts. */
  async function wire(to: string) {
    const sockets: Socket[] = [];
    const port = Number(to.split(":")[1]);
    const server = createServer((socket) => {
      const onward = connectTcp({ host: "127.0.0.1", port });
      for (const end of [socket, onward]) end.on("error", () => undefined);
      sockets.push(socket);
      socket.pipe(onward).pipe(socket);
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    return {
      address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
      open: () => sockets.filter(({ destroyed }) => !destroyed),
      cut: () => sockets.at(-1)?.destroy(),
      [Symbol.dispose]: () => void server.close(),
    };
  }

  it("carries a hundred sessions at once", async () => {
    const peer = await peerAt("127.0.0.1:0");
    using between = await wire(peer.address);
    const runtime = runtimeTo(between.address);
    const said = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => saidBy(await attached(runtime, `session-${index}`), `echo ${index}`)),
    );
    expect(said).toEqual(Array.from({ length: 100 }, (_, index) => String(index)));
    expect(between.open()).toHaveLength(1);
  });

  it("that is cut off interrupts the turns on it; the next call dials again", async () => {
    const peer = await peerAt("127.0.0.1:0");
    using between = await wire(peer.address);
    const runtime = runtimeTo(between.address);
    const incarnation = await incarnate(runtime);
    const harness = await runtime.attach(incarnation);
    expect(await runtime.attach(incarnation)).toBe(harness);
    const turn = drive(harness, "wait");
    await turn.speaks;
    between.cut();
    expect((await errorOf(turn.said)).code).toBe("unavailable");
    expect((await errorOf(saidBy(harness, "echo late"))).code).toBe("unavailable");
    expect(await saidBy(await runtime.attach(incarnation), "echo again")).toBe("again");
    await until(() => between.open().length === 1);
  });

  it("to somebody who never answers is given up in time", async () => {
    const mute = createServer(() => undefined).listen(0, "127.0.0.1");
    await new Promise((resolve) => mute.once("listening", resolve));
    const runtime = runtimeTo(`127.0.0.1:${(mute.address() as AddressInfo).port}`, { connectTimeoutMs: 200 });
    expect(await errorOf(runtime.describe())).toMatchObject({ code: "unavailable", message: expect.stringMatching(/answer/) as string });
    mute.close();
  });

  it("is not waited for by a caller that gives up, and is there for the others", async () => {
    const peer = await peerAt("127.0.0.1:0");
    const runtime = runtimeTo(peer.address);
    const reason = new Error("enough");
    const abort = new AbortController();
    const given = runtime.describe({ signal: abort.signal });
    const kept = runtime.describe();
    abort.abort(reason);
    await expect(given).rejects.toBe(reason);
    expect(await kept).toMatchObject({ id: "behaving" });
  });

  it("is closed with the runtime, which interrupts what runs on it", async () => {
    const peer = await peerAt("127.0.0.1:0");
    const runtime = runtimeTo(peer.address);
    const turn = drive(await attached(runtime), "wait");
    await turn.speaks;
    await runtime[Symbol.asyncDispose]();
    expect((await errorOf(turn.said)).code).toBe("unavailable");
    expect((await errorOf(runtime.describe())).code).toBe("unavailable");
  });
});

describe("a session elsewhere", () => {
  it("is its journal: a snapshot is the session, and whoever restores it starts afresh", async () => {
    const peer = await peerAt("127.0.0.1:0");
    const runtime = runtimeTo(peer.address);
    expect(runtime.capabilities()).toMatchObject({ memorySnapshot: false });
    const incarnation = await incarnate(runtime);
    const turn = drive(await runtime.attach(incarnation), "wait");
    await turn.speaks;
    expect((await errorOf(runtime.snapshot(incarnation, "local"))).code).toBe("aborted");
    turn.cancel();
    await expect(turn.said).rejects.toThrow("cancelled");
    expect(await runtime.snapshot(incarnation, "local")).toMatchObject({ local: "session", memory: false });
    expect(await runtime.status(incarnation)).toBe(ComputeState.COMPUTE_LIVE);
    const snapshot = await runtime.snapshot(incarnation, "external");
    expect(await runtime.status(incarnation)).toBe(ComputeState.COMPUTE_TERMINATED);
    expect((await errorOf(runtime.attach(incarnation))).code).toBe("unavailable");
    for (const again of ["restore", "fork"] as const) {
      const restored = await runtime[again](snapshot, { sessionUid: sessionUidOf("other"), fence: fenceOf(7) });
      expect(restored).toMatchObject({ sessionUid: "other", fence: 7, runtime: "remote", address: peer.address });
      await runtime.stop(restored);
      await runtime.stop(restored);
      expect(await runtime.status(restored)).toBe(ComputeState.COMPUTE_TERMINATED);
    }
  });

  it("is refused for what is no address, and for what is no PEM", () => {
    expect(() => runtimeTo("nowhere")).toThrow("address:");
    expect(() => runtimeTo("127.0.0.1:1", { tls: { cert: "x" } })).toThrow("tls:");
    expect(() => runtimeTo("127.0.0.1:1", { tls: { cert: "x", key: "y" } })).toThrow("tls:");
  });
});

describe.runIf(spawnSync("openssl", ["version"]).status === 0)("TLS to a harness", () => {
  it("is spoken with the authority that it is given, and with no other", async () => {
    using folder = new TemporaryFolder();
    const [key, cert] = [join(folder.path, "key.pem"), join(folder.path, "cert.pem")];
    const subject = ["-subj", "/CN=harness.test", "-addext", "subjectAltName=DNS:harness.test"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const made = spawnSync("openssl", ["req", "-x509", ...curve, ...subject, "-days", "2", "-keyout", key, "-out", cert]);
    expect(made.status).toBe(0);
    const peer = await peerAt("127.0.0.1:0");
    const pem = { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
    const door = createTlsServer({ ...pem, ALPNProtocols: ["h2"] }, (socket) => {
      const onward = connectTcp({ host: "127.0.0.1", port: Number(peer.address.split(":")[1]) });
      for (const end of [socket, onward]) end.on("error", () => undefined);
      socket.pipe(onward).pipe(socket);
    }).listen(0, "127.0.0.1");
    door.on("tlsClientError", () => undefined);
    await new Promise((resolve) => door.once("listening", resolve));
    const address = `localhost:${(door.address() as AddressInfo).port}`;
    const known = runtimeTo(address, { tls: { ca: pem.cert, serverName: "harness.test" } });
    expect(await saidBy(await attached(known), "echo secret")).toBe("secret");
    for (const tls of [{ ca: pem.cert }, { serverName: "harness.test" }]) {
      expect((await errorOf(runtimeTo(address, { tls, connectTimeoutMs: 500 }).describe())).code).toBe("unavailable");
    }
    await known[Symbol.asyncDispose]();
    door.close();
  });
});
