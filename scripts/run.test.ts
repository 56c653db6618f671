import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { run } from "./run.ts";

function node(script: string): string[] {
  return ["node", "--input-type=module", "--eval", script];
}

describe("a command that is run", () => {
  it("brings its exit code and everything it said", async () => {
    expect(await run(node('console.log("one"); console.error("two"); process.exitCode = 3;'))).toEqual({
      exitCode: 3,
      output: "one\ntwo\n",
      timedOut: false,
    });
  });

  it("runs on the repository's Node and reads nothing", async () => {
    const script = 'process.stdin.resume().on("end", () => console.log(process.version));';
    expect((await run(node(script))).output.trim()).toBe(process.version);
  });

  it("sees variables that are added and not those that are taken away", async () => {
    process.env["HOLDFAST_TAKEN"] = "1";
    const script = "console.log(process.env.HOLDFAST_ADDED, process.env.HOLDFAST_TAKEN);";
    const { output } = await run(node(script), { env: { HOLDFAST_ADDED: "2", HOLDFAST_TAKEN: undefined } });
    delete process.env["HOLDFAST_TAKEN"];
    expect(output).toBe("2 undefined\n");
  });

  it("fails when it cannot be started", async () => {
    const { exitCode, output } = await run(["no-such-command-here"]);
    expect(exitCode).toBe(1);
    expect(output).toContain("no-such-command-here");
  });

  it("is ended at its time limit, with what it started", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const grandchild = `require("node:net").connect(${port}, "127.0.0.1")`;
    const script = `import { spawn } from "node:child_process"; spawn(process.execPath, ["--eval", ${JSON.stringify(grandchild)}]);`;
    const outcome = run(node(script), { timeoutMs: 5_000 });
    const [connection] = (await once(server, "connection")) as [Socket];
    const gone = once(connection.on("error", () => undefined).resume(), "close");
    expect(await outcome).toMatchObject({ exitCode: 1, timedOut: true });
    await gone;
    server.close();
  });
});
