import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { command } from "../../e2e/support/command.ts";
import { newDataFolder, serve, type ServerProcess } from "../../e2e/support/server-process.ts";

/** A model API that takes requests and never answers, so that a turn goes on until something ends it. */
async function silentModel(): Promise<{ readonly env: Record<string, string>; asked(): number }> {
  let asked = 0;
  const server = createServer(() => asked++);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const env = { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`, HOLDFAST_MODEL: "silent", HOLDFAST_HARNESS: "chat" };
  return { env, asked: () => asked };
}

/** Begins a turn that will not end by itself, and returns its session's uid. */
async function beginTurn({ url }: ServerProcess, asked: () => number): Promise<string> {
  const created = await fetch(`${url}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ session: {} }),
  });
  const { metadata } = (await created.json()) as { metadata: { uid: string } };
  const body = JSON.stringify({ inputs: [{ role: "user", parts: [{ text: { text: "hello" } }] }] });
  const path = `${url}/v1/sessions/${metadata.uid}/exec`;
  void fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body }).catch(() => undefined);
  await expect.poll(asked).toBe(1);
  return metadata.uid;
}

async function execState({ url }: ServerProcess, uid: string): Promise<string> {
  const session = (await (await fetch(`${url}/v1/sessions/${uid}`)).json()) as { exec_state: string };
  return session.exec_state;
}

describe("a server process", () => {
  it("says one line when it is ready, and ends with 0 on SIGTERM and SIGINT", async () => {
    const folder = newDataFolder();
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      const server = await serve(folder);
      const { exitCode, stdout } = await server.end(signal);
      expect(stdout).toBe(`holdfast is listening on ${server.url} (data in ${folder})\n`);
      expect(exitCode).toBe(0);
    }
  });

  it("interrupts a turn that outlasts its grace and still ends with 0; the next server finds the turn", async () => {
    const folder = newDataFolder();
    const { env, asked } = await silentModel();
    const server = await serve(folder, { env: { ...env, HOLDFAST_SHUTDOWN_GRACE: "0.2" } });
    const uid = await beginTurn(server, asked);
    expect((await server.end("SIGTERM")).exitCode).toBe(0);
    const next = await serve(folder);
    expect(await execState(next, uid)).toBe("EXEC_AWAITING");
    await next.end("SIGTERM");
  });

  it("ends at once on a second signal, with the signal's code, and loses nothing", async () => {
    const folder = newDataFolder();
    const { env, asked } = await silentModel();
    const server = await serve(folder, { env });
    const uid = await beginTurn(server, asked);
    server.command.child.kill("SIGTERM");
    await server.command.said("shutting down", "stderr");
    expect((await server.end("SIGTERM")).exitCode).toBe(143);
    const next = await serve(folder);
    await expect.poll(() => execState(next, uid), { timeout: 20_000, interval: 250 }).toBe("EXEC_AWAITING");
    await next.end("SIGTERM");
  });

  it("goes on after a client sent garbage, and after one that vanished", async () => {
    const server = await serve(newDataFolder());
    const [host = "", port = ""] = server.address.split(":");
    for (const garbage of [
      "\u0000\u0001\u0002",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nno frames at all, but many of these bytes",
      "GET / HTTP/9.9\r\n\r\n",
      "PRI",
    ]) {
      const socket = connect({ host, port: Number(port) });
      socket.on("error", () => undefined);
      socket.write(garbage, "latin1");
      socket.resume();
      if (garbage === "PRI") socket.end();
      await new Promise((resolve) => socket.once("close", resolve));
    }
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    expect((await server.end("SIGTERM")).exitCode).toBe(0);
  });
});

describe("a server process that cannot start", () => {
  /** Runs it to its end and checks that it says one line that is no stack. */
  async function refusal(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const { exitCode, stdout, stderr } = await command(["serve", "--log-level", "error", ...args], { env });
    expect(stdout).toBe("");
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(stderr.trimEnd().split("\n").length).toBe(1);
    return { exitCode, line: stderr.trimEnd() };
  }

  it("says so in one line: a port in use, a taken folder, a bad folder, a damaged journal, an open door, a bad flag", async () => {
    const folder = newDataFolder();
    const server = await serve(folder);
    const here = ["--listen", "127.0.0.1:0"];
    expect(await refusal(["--listen", server.address, "--store", "memory"])).toMatchObject({
      exitCode: 4,
      line: expect.stringContaining("another process uses this port") as string,
    });
    expect(await refusal([...here, "--data", folder])).toMatchObject({
      exitCode: 5,
      line: expect.stringContaining("another running process has it") as string,
    });
    const file = join(newDataFolder(), "file");
    writeFileSync(file, "");
    expect(await refusal([...here, "--data", file])).toMatchObject({
      exitCode: 4,
      line: expect.stringContaining("is not a folder") as string,
    });
    const damaged = newDataFolder();
    writeFileSync(join(damaged, "journal.sqlite"), "not a database, and long enough to be looked at".repeat(100));
    expect(await refusal([...here, "--data", damaged])).toMatchObject({ exitCode: 1, line: expect.stringContaining("damaged") as string });
    expect(await refusal(["--listen", "0.0.0.0:0", "--store", "memory"])).toMatchObject({
      exitCode: 2,
      line: expect.stringContaining("needs a token") as string,
    });
    expect(await refusal([...here, "--store", "paper"])).toMatchObject({ exitCode: 2, line: expect.stringContaining("--store") as string });
    expect(await refusal(here, { HOLDFAST_TOKEN: "two words" })).toMatchObject({
      exitCode: 2,
      line: expect.stringContaining("HOLDFAST_TOKEN") as string,
    });
    await server.end("SIGTERM");
  });
});
