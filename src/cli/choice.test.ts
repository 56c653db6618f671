import { createServer } from "node:http";
import { createServer as createTcpServer, type AddressInfo, type Server } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { chooseServer } from "./choice.ts";
import { DEFAULT_ADDRESS, probe, type ProbeOutcome } from "./probe.ts";

const answers = (outcome: ProbeOutcome) => () => Promise.resolve(outcome);
const notAsked = (): Promise<ProbeOutcome> => Promise.reject(new Error("the default port was probed"));

describe("the choice of a server", () => {
  it("is the flag, else the variable, and then nobody is asked", async () => {
    const byFlag = { kind: "remote", address: "a:1", serverFlag: " --server a:1" };
    expect(await chooseServer("a:1", "b:2", notAsked)).toEqual(byFlag);
    expect(await chooseServer(undefined, "b:2", notAsked)).toEqual({ kind: "remote", address: "b:2", serverFlag: "" });
  });

  it("is the embedded server when that is asked for", async () => {
    expect(await chooseServer("embedded", "b:2", notAsked)).toEqual({ kind: "embedded", found: undefined });
    expect(await chooseServer(undefined, "embedded", notAsked)).toEqual({ kind: "embedded", found: undefined });
  });

  it("is otherwise a Holdfast server on the default port, else the embedded one", async () => {
    expect(await chooseServer(undefined, "", answers("holdfast"))).toEqual({ kind: "remote", address: DEFAULT_ADDRESS, serverFlag: "" });
    expect(await chooseServer(undefined, undefined, answers("nobody"))).toEqual({ kind: "embedded", found: "nobody" });
    const other = await chooseServer(undefined, undefined, answers("somebody-else"));
    expect(other).toEqual({ kind: "embedded", found: "somebody-else" });
  });
});

describe("the probe", () => {
  async function listening(server: Server): Promise<string> {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("knows Holdfast by its health route", async () => {
    const server = createServer((request, response) => {
      response.end(request.url === "/healthz" ? '{"server":"holdfast","status":"ok"}' : "{}");
    });
    expect(await probe(await listening(server))).toBe("holdfast");
  });

  it.each([
    ["another HTTP server", createServer((_, response) => response.end("hello"))],
    ["another server with a health route", createServer((_, response) => response.end('{"status":"ok"}'))],
    ["one that sends elsewhere", createServer((_, response) => response.writeHead(302, { location: "http://127.0.0.1:1/" }).end())],
    ["one that speaks something else", createTcpServer((socket) => socket.end("220 ready\r\n"))],
    ["one that says nothing", createTcpServer((socket) => socket.on("error", () => undefined).resume())],
  ])("does not take %s for it", async (_, server) => {
    expect(await probe(await listening(server))).toBe("somebody-else");
  });

  it("says that nobody listens", async () => {
    const server = createTcpServer();
    const address = await listening(server);
    await new Promise((resolve) => server.close(resolve));
    expect(await probe(address)).toBe("nobody");
  });
});
