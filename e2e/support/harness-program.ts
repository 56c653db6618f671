/** One of the built-in harnesses as a program of its own: it is served where HOLDFAST_HARNESS_LISTEN says. */

import { serveHarness } from "../../src/harness-sdk/node/index.ts";
import { createChatHarness } from "../../src/harnesses/chat.ts";
import { createCounterHarness } from "../../src/harnesses/counter.ts";
import { createEchoHarness } from "../../src/harnesses/echo.ts";

const HARNESSES = { echo: createEchoHarness, chat: createChatHarness, counter: createCounterHarness };

const [name = ""] = process.argv.slice(2);
if (name !== "echo" && name !== "chat" && name !== "counter") throw new Error("name one of the harnesses echo, chat and counter");
await serveHarness(HARNESSES[name]());
