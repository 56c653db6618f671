/**
 * A program that serves the behaving harness over its standard streams. Its argument says how it takes to being a child: `serve` (the
 * default); `deaf` leaves for nothing but SIGKILL; `silent` never answers; `leave <code>` leaves at once; `mute` closes its output.
 */

import { closeSync } from "node:fs";
import { serveLineOver } from "../../harness-wire/node/index.ts";
import { behavingHarness } from "./behaviour.ts";

const [how = "serve", code = "0"] = process.argv.slice(2);

function serve(): Promise<void> {
  return serveLineOver({ readable: process.stdin, writable: process.stdout }, behavingHarness(process.env["HARNESS_VERSION"])).closed;
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
  case "deaf":
    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => undefined);
    setInterval(() => undefined, 60_000);
    void serve();
    break;
  default:
    await serve();
    process.exit(0);
}
