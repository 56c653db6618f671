/** The Python SDK at the end of a line: every play of the probe harness has the effects and the outcome that the TypeScript one has in process. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, it } from "vitest";
import { systemClock as clock } from "../src/node/index.ts";
import { openChildLine, wireCases } from "../src/testing/harness-wire/index.ts";

const SDK = fileURLToPath(new URL("../sdks/python", import.meta.url));
const PYTHON = join(SDK, ".venv/bin/python");

beforeAll(() => {
  if (!existsSync(PYTHON)) throw new Error("the Python SDK is not installed: run npm test -- --only python");
});

describe("a harness in Python, over its standard streams", () => {
  const options = { clock, command: PYTHON, cwd: SDK, env: { PYTHONPATH: join(SDK, "src") } };
  it.each(wireCases({ connect: () => openChildLine(["-m", "tests.probe"], options) }))("$name", ({ run }) => run());
});
