/**
 * A harness that mints a token for the audience in its config and leaves it in the file TOKEN_FILE, where only the test looks. With
 * CONTRACT_ONLY set it speaks nothing but the contract, and mints through the host's own service; it reads its history there too.
 */

import { writeFileSync } from "node:fs";
import { serveGrpc } from "../../src/harness-wire/node/index.ts";
import { defineHarness, serveHarness } from "../../src/harness-sdk/node/index.ts";

const minting = defineHarness({
  id: "minting",
  version: "1",
  run: async (start, sink) => {
    let events = 0;
    for await (const page of start.history.read()) events += page.events.length;
    await sink.output(`${events} events before`);
    const { mintToken, principal } = start.identity;
    if (mintToken === undefined) return sink.output("no token can be had");
    writeFileSync(process.env["TOKEN_FILE"] ?? "", await mintToken([new TextDecoder().decode(start.config)]));
    await sink.output(`minted for ${principal?.principal}`);
  },
});

if (process.env["CONTRACT_ONLY"] === undefined) await serveHarness(minting);
else {
  const served = await serveGrpc(minting, { address: process.env["HOLDFAST_HARNESS_LISTEN"] ?? "", pullsHistory: true, wire: false });
  process.stderr.write(`harness served at ${served.address}\n`);
}
