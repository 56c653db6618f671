/** `holdfast serve` */

import { Option, type Command } from "commander";
import type { Flags } from "../../server/index.ts";
import { SETTINGS, type Setting } from "../../server/settings.ts";
import { define, optionOr, run } from "../define.ts";

const DESCRIPTION =
  "Runs the server: gRPC, REST and server-sent events on one port. It says where it listens on standard output and logs JSON lines on " +
  "standard error. SIGTERM or Ctrl-C shuts it down: no new turns, and running ones get time to end; a second one ends it at once.\n\n" +
  "A flag goes before its variable, and a variable before the config file. What is secret has a variable only: HOLDFAST_TOKEN (or " +
  "HOLDFAST_TOKEN_FILE), HOLDFAST_OPERATOR_TOKEN, OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY. Harnesses are registered on a port of " +
  "the operator's, beside the server's own.";

export function serveCommand(): Command {
  const command = define("serve", "run the server", DESCRIPTION, [
    ["on 127.0.0.1:8080, data in ./.holdfast", "holdfast serve"],
    ["another port and folder, nothing kept in git", "holdfast serve --listen 127.0.0.1:9000 --data ~/.local/share/holdfast"],
    [
      "open to a network: that needs a token, and should have TLS",
      "HOLDFAST_TOKEN_FILE=token.txt holdfast serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem",
    ],
  ]);
  for (const setting of Object.values<Setting>(SETTINGS)) {
    if (setting.flag === undefined) continue;
    const flags = `--${setting.flag} <${setting.takes ?? "value"}>`;
    const what = `${setting.what}; or ${setting.env}`;
    command.addOption(setting.default === undefined ? new Option(flags, what) : optionOr(flags, what, setting.default));
  }
  return command.action((flags: Flags) =>
    run(
      {},
      async ({ screen }) => {
        // The server is loaded only by the commands that run one: the others start in half the time.
        const { serve } = await import("../../server/index.ts");
        await serve({ flags, env: process.env, say: (line) => screen.line(line) });
        return 0;
      },
      { outlivesOutput: true },
    ),
  );
}
