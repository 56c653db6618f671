/** The package as a stranger gets it: packed from this tree, installed into an empty folder, run with nothing of this tree on the path. */

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { ROOT, run, type Outcome } from "../scripts/run.ts";

/** What npm packed, by its own account. */
export interface Tarball {
  readonly path: string;
  readonly files: readonly string[];
  readonly bytes: number;
}

export interface Installed {
  readonly tarball: Tarball;
  /** The folder that the package was installed into. */
  readonly folder: string;
  /** Runs a command there. */
  command(command: readonly string[], options?: { readonly env?: Readonly<Record<string, string>> }): Promise<Outcome>;
  /** Removes everything that was made. */
  remove(): void;
}

interface PackReport {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

/** What `npm pack --json` printed: a list, or an object by package name, depending on npm. */
function readPackReport(output: string): PackReport {
  const report = JSON.parse(output.slice(output.search(/^[[{]/m))) as readonly PackReport[] | Readonly<Record<string, PackReport>>;
  const [only] = Object.values(report);
  if (only === undefined) throw new Error(`npm pack reported no package: ${output}`);
  return only;
}

/** npm hands its scripts variables that tie a nested npm to this tree; what says how to reach a registry stays. */
function strangersEnv(): Record<string, string | undefined> {
  const kept = /^npm_config_(?:registry|cache|userconfig|globalconfig|cafile|proxy|https_proxy|noproxy)$/i;
  const dropped = Object.keys(process.env).filter((name) => /^npm_/i.test(name) && !kept.test(name));
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => !folder.startsWith(ROOT));
  return {
    ...Object.fromEntries(dropped.map((name) => [name, undefined])),
    NODE_OPTIONS: undefined,
    HOLDFAST_SERVER: undefined,
    PATH: [dirname(process.execPath), ...path].join(delimiter),
  };
}

/** Packs this tree, as publishing would, and installs the tarball. */
export async function installTarball(): Promise<Installed> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-package-")));
  const folder = join(base, "app");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{ "name": "app", "private": true, "type": "module" }\n');
  const env = strangersEnv();
  const packed = await run(["npm", "pack", "--json", "--pack-destination", base], { env });
  if (packed.exitCode !== 0) throw new Error(`npm pack failed: ${packed.output}`);
  const report = readPackReport(packed.output);
  const tarball = { path: join(base, report.filename), files: report.files.map(({ path }) => path), bytes: report.size };
  const installed = await run(["npm", "install", "--prefer-offline", "--no-audit", "--no-fund", tarball.path], { cwd: folder, env });
  if (installed.exitCode !== 0) throw new Error(`npm install failed: ${installed.output}`);
  return {
    tarball,
    folder,
    command: (command, options = {}) => run(command, { cwd: folder, env: { ...env, ...options.env }, timeoutMs: 60_000 }),
    remove: () => rmSync(base, { recursive: true, force: true }),
  };
}

/** The package.json of this tree. */
export function ownManifest(): {
  readonly version: string;
  readonly exports: Readonly<Record<string, unknown>>;
  readonly scripts: Readonly<Record<string, string>>;
} {
  return JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as ReturnType<typeof ownManifest>;
}
