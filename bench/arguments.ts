/** The arguments of `npm run bench`. */

import { parseArgs } from "node:util";
import { GROUPS, type Group } from "./context.ts";

/** What a run was asked to do. */
export interface BenchArguments {
  readonly groups: readonly Group[];
  readonly quick: boolean;
  /** Where the JSON goes; undefined for the default place. */
  readonly json: string | undefined;
  /** The folder that the journals go into; undefined for the system's own. */
  readonly folder: string | undefined;
  /** Print the run as a section of a Markdown document. */
  readonly markdown: boolean;
  /** A missed target makes the run fail. */
  readonly check: boolean;
  readonly help: boolean;
}

export const HELP = `Measures Holdfast on this machine.

  npm run bench -- [options]

  --only GROUP   only this group (may be given more than once): ${GROUPS.join(", ")}
  --quick        short runs, for a look
  --json FILE    where the JSON goes (default reports/bench-<date>.json)
  --dir FOLDER   where the journals go, on the disk that is to be measured (default the system's temporary folder)
  --markdown     print the run as it stands in docs/bench.md, and nothing else
  --check        end with status 1 when a target is missed
  --help         this text

What each figure means is in docs/bench.md. Close other programs first: the figures are medians of rounds that take turns with
their baselines, which cancels a steady load and not a burst.`;

/** The arguments of a command line. Throws an Error whose message says what would be right. */
export function benchArguments(args: readonly string[]): BenchArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string", multiple: true },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      dir: { type: "string" },
      markdown: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const only = values.only ?? [];
  for (const name of only) {
    if (!isGroup(name)) throw new Error(`--only: there is no group "${name}"; there are ${GROUPS.join(", ")}`);
  }
  return {
    groups: GROUPS.filter((group) => only.length === 0 || only.includes(group)),
    quick: values.quick,
    json: values.json,
    folder: values.dir,
    markdown: values.markdown,
    check: values.check,
    help: values.help,
  };
}

function isGroup(name: string): name is Group {
  return (GROUPS as readonly string[]).includes(name);
}
