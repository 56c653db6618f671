/** `holdfast version` */

import type { Command } from "commander";
import { define, run } from "../define.ts";
import { packageVersion } from "../version.ts";

export function versionCommand(): Command {
  return define("version", "print the version", "Prints the version of this program and of the Node that runs it.", [
    ["what is installed", "holdfast version"],
  ])
    .option("--json", "as a JSON object")
    .action((flags: { readonly json?: boolean }) =>
      run(flags, async ({ screen }) => {
        const version = packageVersion();
        if (screen.json) screen.value({ version, node: process.versions.node });
        else screen.line(`holdfast ${version} (node ${process.versions.node})`);
        return 0;
      }),
    );
}
