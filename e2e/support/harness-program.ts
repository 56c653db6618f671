/**
 * One of the built-in harnesses as a program of its own: it is served where HOLDFAST_HARNESS_LISTEN says, by Holdfast's wire or, with
 * `contract`, by the contract's own calls alone, as a harness that was written without Holdfast's SDK is.
 */

import { serveHarness } from "../../src/harness-sdk/node/index.ts";
import { serveGrpc } from "../../src/harness-wire/node/index.ts";
import { createChatHarness } from "../../src/harnesses/chat.ts";
import { createCounterHarness } from "../../src/harnesses/counter.ts";
import { createEchoHarness } from "../../src/harnesses/echo.ts";

const HARNESSES = { echo: createEchoHarness, chat: createChatHarness, counter: createCounterHarness };

const [name = "", how] = process.argv.slice(2);
if (name !== "echo" && name !== "chat" && name !== "counter") throw new Error("name one of the harnesses echo, chat and counter");
if (how === "contract") {
  const { address } = await serveGrpc(HARNESSES[name](), { address: process.env["HOLDFAST_HARNESS_LISTEN"] ?? "127.0.0.1:0", wire: false });
  process.stderr.write(`harness served at ${address}\n`);
} else await serveHarness(HARNESSES[name]());
