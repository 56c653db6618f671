import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { systemClock } from "../node/index.ts";
import { TEST_CERT, TEST_KEY } from "../../e2e/support/certificate.ts";
import { createHttp1Server } from "./http1.ts";
import { listen, type Listener, type ListenerOptions } from "./listener.ts";

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** A port with both protocols behind it, each answering with its own name. */
async function openPort(options: Partial<ListenerOptions> = {}): Promise<Listener> {
  const http1 = createHttp1Server({ fetch: async (request) => new Response(`http1 ${await request.text()}`) }, options.limits);
  const http2 = createHttp2Server((_request, response) => void response.end("http2"));
  const listener = await listen({
    host: "127.0.0.1",
    port: 0,
    http1: (socket) => http1.accept(socket),
    http2: (socket) => void http2.emit("connection", socket),
    clock: systemClock,
    log: SILENT_LOG,
    ...options,
  });
  onTestFinished(async () => {
    await Promise.all([listener.close(), http1.close(0)]);
  });
  return listener;
}

function dial(listener: Listener): Socket {
  const socket = connect({ host: "127.0.0.1", port: listener.port, noDelay: true, allowHalfOpen: true });
  socket.on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Everything that the other side sends until it ends. */
async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("latin1");
}

/** Resolves with what came once `part` is in it. */
async function readUntil(socket: Socket, part: string): Promise<string> {
  let seen = "";
  for await (const [chunk] of on(socket)) {
    seen += chunk.toString("latin1");
    if (seen.includes(part)) return seen;
  }
  return seen;
}

async function* on(socket: Socket): AsyncGenerator<[Buffer]> {
  while (!socket.destroyed) yield (await once(socket, "data")) as [Buffer];
}

async function askHttp2(listener: Listener, options: Parameters<typeof connectHttp2>[1] = {}): Promise<string> {
  const scheme = "ca" in options ? "https" : "http";
  const session = connectHttp2(`${scheme}://127.0.0.1:${listener.port}`, options);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":path": "/" });
  stream.setEncoding("utf8");
  let body = "";
  for await (const chunk of stream) body += String(chunk);
  return body;
}

describe("the one port", () => {
  it("serves HTTP/1.1 and HTTP/2 side by side", async () => {
    const listener = await openPort();
    const [one, two] = await Promise.all([
      fetch(`http://127.0.0.1:${listener.port}/`, { method: "POST", body: "hello" }).then((response) => response.text()),
      askHttp2(listener),
    ]);
    expect(one).toBe("http1 hello");
    expect(two).toBe("http2");
  });

  it("knows HTTP/2 when its preface comes byte by byte", async () => {
    const listener = await openPort();
    const socket = dial(listener);
    for (const byte of PREFACE) {
      socket.write(byte);
      await nextTurn();
    }
    socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
    const [frame] = (await once(socket, "data")) as [Buffer];
    // A SETTINGS frame, which is how a server begins.
    expect(frame[3]).toBe(4);
  });

  for (const method of ["GET", "POST", "PUT", "PROPFIND"]) {
    it(`knows HTTP/1.1 when ${method} comes byte by byte`, async () => {
      const listener = await openPort();
      const socket = dial(listener);
      const body = method === "GET" ? "\r\n" : "content-length: 2\r\n\r\nhi";
      for (const byte of `${method} / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${body}`) {
        socket.write(byte);
        await nextTurn();
      }
      expect(await readAll(socket)).toContain(" 200 ");
    });
  }

  it("answers a client that ends its side after the request", async () => {
    const listener = await openPort();
    const socket = dial(listener);
    socket.end("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    expect(await readAll(socket)).toContain("http1");
  });

  it("drops a connection that says nothing, and one that stops in the middle of a preface", async () => {
    const listener = await openPort({ limits: { helloTimeoutMs: 60 } });
    const silent = dial(listener);
    const half = dial(listener);
    half.write(PREFACE.slice(0, 10));
    await Promise.all([readAll(silent), readAll(half)]);
    expect(listener.connections).toBe(0);
  });

  it("drops an HTTP/1.1 request whose header never ends", async () => {
    const listener = await openPort({ limits: { helloTimeoutMs: 100 } });
    const socket = dial(listener);
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n");
    expect(await readAll(socket)).toContain(" 408 ");
  });

  it("refuses an HTTP/1.1 header over the limit", async () => {
    const listener = await openPort({ limits: { metadataBytesMax: 1_024 } });
    const socket = dial(listener);
    socket.write(`GET / HTTP/1.1\r\nhost: x\r\nx-large: ${"x".repeat(1_100)}\r\n\r\n`);
    expect(await readAll(socket)).toContain(" 431 ");
  });

  it("outlives clients that vanish in the middle", async () => {
    const listener = await openPort();
    for (const part of ["", "P", PREFACE.slice(0, 23), PREFACE, "GET /"]) {
      const socket = dial(listener);
      await once(socket, "connect");
      if (part !== "") socket.write(part);
      socket.resetAndDestroy();
    }
    expect(await askHttp2(listener)).toBe("http2");
  });

  it("refuses connections over the limit and takes new ones when old ones are gone", async () => {
    const listener = await openPort({ limits: { connectionsMax: 2 } });
    const [first, second] = [dial(listener), dial(listener)];
    await Promise.all([once(first, "connect"), once(second, "connect")]);
    const third = dial(listener);
    await readAll(third);
    expect(listener.connections).toBe(2);
    const gone = once(first, "close");
    first.destroy();
    await gone;
    let answer = "";
    while (answer === "") {
      const socket = dial(listener);
      socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
      answer = await readAll(socket).catch(() => "");
    }
    expect(answer).toContain("http1");
  });

  it("stops taking connections, and leaves those that it has", async () => {
    const listener = await openPort();
    const socket = dial(listener);
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await readUntil(socket, "http1");
    const undecided = dial(listener);
    await once(undecided, "connect");
    await nextTurn();
    listener.stop();
    await readAll(undecided);
    const late = dial(listener);
    await expect(once(late, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await readUntil(socket, "http1");
    await listener.close();
    expect(listener.connections).toBe(0);
  });

  it("says what is wrong with a port that it cannot have", async () => {
    const listener = await openPort();
    await expect(openPort({ port: listener.port })).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("another process uses this port") as string,
    });
    await expect(openPort({ host: "203.0.113.7" })).rejects.toMatchObject({ code: "invalid_argument", field: "listen" });
  });
});

describe("the one port with TLS", () => {
  const tls = { key: TEST_KEY, cert: TEST_CERT };
  const trust = { ca: TEST_CERT, servername: "localhost" };

  it("serves both protocols", async () => {
    const listener = await openPort({ tls });
    expect(await askHttp2(listener, { ...trust })).toBe("http2");
    const socket = connectTls({ host: "127.0.0.1", port: listener.port, ...trust, ALPNProtocols: ["http/1.1"] });
    onTestFinished(() => void socket.destroy());
    socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    expect(await readAll(socket)).toContain("http1");
  });

  it.each([
    [["h2", "http/1.1"], "http/1.1"],
    [["http/1.1", "h2"], "http/1.1"],
    [["h2"], "h2"],
    [["http/1.1"], "http/1.1"],
  ])("agrees with a client that offers %j on %s", async (offered, agreed) => {
    const listener = await openPort({ tls });
    const socket = connectTls({ host: "127.0.0.1", port: listener.port, ...trust, ALPNProtocols: offered });
    onTestFinished(() => void socket.destroy());
    await once(socket, "secureConnect");
    expect(socket.alpnProtocol).toBe(agreed);
  });

  it("drops a client that speaks no TLS, or that does not finish its handshake", async () => {
    const listener = await openPort({ tls, limits: { helloTimeoutMs: 100 } });
    const cleartext = dial(listener);
    cleartext.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const silent = dial(listener);
    await Promise.all([readAll(cleartext), readAll(silent)]);
    expect(listener.connections).toBe(0);
  });
});
