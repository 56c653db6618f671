/** `holdfast init` */

import { Option, type Command } from "commander";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import { define, run } from "../define.ts";
import { harnessNameOf, harnessProject } from "../harness-project.ts";
import { packageDependency, pythonRequirement } from "../version.ts";

interface InitFlags {
  readonly python?: boolean;
  readonly json?: boolean;
}

export function initCommand(): Command {
  return define(
    "init",
    "begin a harness of your own",
    "Writes a harness project into a folder: the agent's code, the config of a server that runs it, and a README with the commands to type. " +
      "The folder is made where it is not there; a file that is there is never replaced.",
    [
      ["an agent in TypeScript", "holdfast init my-agent"],
      ["an agent in Python", "holdfast init my-agent --python"],
    ],
  )
    .argument("<dir>", "the project's folder; its name is the harness's")
    .addOption(new Option("--python", "in Python instead of TypeScript"))
    .addOption(new Option("--json", "the harness's name and the files, on one line"))
    .action((dir: string, flags: InitFlags) =>
      run(flags, async ({ screen }) => {
        const folder = resolve(dir);
        const name = harnessNameOf(basename(folder));
        const language = flags.python === true ? "python" : "typescript";
        const { files, commands } = harnessProject({ name, language, dependency: packageDependency(), pythonPackage: pythonRequirement() });
        writeProject(folder, files);
        if (screen.json) screen.value({ harness: name, folder, files: Object.keys(files) });
        else {
          screen.line(`harness ${name}  ${Object.keys(files).length} files in ${dir}`);
          screen.line(`  cd ${dir}`);
          for (const command of commands) screen.line(`  ${command}`);
        }
        return 0;
      }),
    );
}

/** Writes all files, or none where one of them is there. */
function writeProject(folder: string, files: Readonly<Record<string, string>>): void {
  const there = Object.keys(files).filter((file) => existsSync(join(folder, file)));
  if (there.length > 0) {
    throw new HoldfastError("already_exists", `DIR: has ${there.join(", ")} already, and no file is replaced; name another folder`);
  }
  try {
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text, { flag: "wx" });
  } catch (error) {
    throw invalidArgument("DIR", "must name a folder that can be made and written", { cause: error });
  }
}
