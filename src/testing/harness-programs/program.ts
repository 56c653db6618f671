/**
 * A program that serves the behaving harness where HOLDFAST_HARNESS_LISTEN says: over its standard streams, or over gRPC. Its argument says how it takes to being a child: `serve` (the
 * default); `deaf` leaves for nothing but SIGKILL; `silent` never answers; `leave <code>` leaves at once; `mute` closes its output;
 * `contract` serves the contract alone; `http` says what a server of something else says.
 */

import { closeSync } from "node:fs";
import { serveGrpc, serveLineOver } from "../../harness-wire/node/index.ts";
import { behavingHarness } from "./behaviour.ts";

const [how = "serve", code = "0"] = process.argv.slice(2);

const harness = behavingHarness(process.env["HARNESS_VERSION"]);

/** Resolves when the host has gone. */
async function serve(): Promise<void> {
  const address = process.env["HOLDFAST_HARNESS_LISTEN"] ?? "stdio";
  if (address === "stdio") return serveLineOver({ readable: process.stdin, writable: process.stdout }, harness).closed;
  const served = await serveGrpc(harness, { address, wire: how !== "contract" });
  // A parent that starts it hears where it listens.
  process.stdout.write(`${served.address}\n`);
  await new Promise((resolve) => process.stdin.on("close", resolve).resume());
}

switch (how) {
  case "leave":
    process.stderr.write("it does not like it here\n");
    process.exitCode = Number(code);
    break;
  case "silent":
    setInterval(() => undefined, 60_000);
    break;
  case "mute":
    setInterval(() => undefined, 60_000);
    closeSync(1);
    break;
  case "http":
    process.stdout.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    setInterval(() => undefined, 60_000);
    break;
  case "deaf":
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => undefined);
    setInterval(() => undefined, 60_000);
    void serve();
    break;
  default:
    await serve();
    process.exit(0);
}
