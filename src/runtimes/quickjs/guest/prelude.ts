/** What runs in a VM before the harness's own script: one expression, a function that is called with the host's one function. */

import { makeCodec, openDoor } from "./door.ts";
import { installBase64, installCloning, installConsole, installRandom, installTimers } from "./platform.ts";
import { installAbort, installTextDecoder, installTextEncoder } from "./web.ts";

const PARTS = [
  installRandom,
  installTimers,
  installConsole,
  installBase64,
  installCloning,
  installTextEncoder,
  installTextDecoder,
  installAbort,
];

/** The source text. The parts are this program's own functions, printed: they are checked and tested like all others. */
export const PRELUDE = `(hostPost) => {
"use strict";
const door = (${openDoor.toString()})(globalThis, hostPost, (${makeCodec.toString()})());
${PARTS.map((part) => `(${part.toString()})(globalThis, door);`).join("\n")}
}`;
