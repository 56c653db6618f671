/**
 * What a sandbox is: an OCI bundle as gVisor takes it.
 *
 * What is inside: no network but a loopback of its own; processes of its own only; the system's programs and libraries, the working
 * directory and what else was named, all read-only; a `/tmp` and a `/dev` in the sandbox's memory; no capabilities. The environment is
 * what was given.
 *
 * The harness is not started on the host's pipes but behind a relay. An event loop that waits for a host's file is not woken any more once
 * its sandbox was restored (gVisor of 2022 does not watch it again); a blocking read is simply done again, and the pipe between relay and
 * harness is the sandbox's own.
 */

import { existsSync, lstatSync, readlinkSync } from "node:fs";
import { masksOf, type Bind, type Mask } from "../../node/index.ts";
import type { GvisorSettings } from "./options.ts";
import type { Programs } from "./programs.ts";

/** Where programs and libraries are. On most systems all but the first are links into it. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/** What programs need of the configuration to start: where libraries are, which alternative is meant, the time zone. */
const CONFIGURATION = ["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"];

/** The variable that tells a harness where it is served. */
const LISTEN_VARIABLE = "HOLDFAST_HARNESS_LISTEN";

const FILES_OPEN_MAX = 4096;

/** A link at the root of the sandbox's file system. */
export interface RootLink {
  readonly path: string;
  readonly target: string;
}

/** One mount of a bundle. */
export interface Mount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options?: readonly string[];
}

/** The links that the root needs, since the host has them. */
export function rootLinks(): readonly RootLink[] {
  return SYSTEM.flatMap((path) => {
    const target = linkAt(path);
    return target === undefined ? [] : [{ path, target }];
  });
}

/** The paths of the host that a sandbox sees, read-only, those first that others may lie in. */
export function visiblePaths({ cwd, readOnly }: GvisorSettings, { command, realCommand }: Programs): readonly string[] {
  const system = SYSTEM.filter((path) => existsSync(path) && linkAt(path) === undefined);
  const configuration = CONFIGURATION.filter((path) => existsSync(path));
  const given: string[] = [];
  // A program that is a link elsewhere needs both its ends, the link being in a folder that is visible or becoming the file itself.
  for (const path of [cwd, ...readOnly, realCommand, command]) {
    if (![...SYSTEM, ...given].some((folder) => path === folder || path.startsWith(`${folder}/`))) given.push(path);
  }
  return [...system, ...configuration, ...given];
}

/** What of those paths a sandbox sees as empty. */
export function emptyPaths(settings: GvisorSettings, programs: Programs): readonly Mask[] {
  return masksOf(settings.hidden, bindsOf(settings, programs));
}

/** The real file of a program that is a link stands at both its names. */
function bindsOf(settings: GvisorSettings, programs: Programs): readonly Bind[] {
  return visiblePaths(settings, programs).map((path) => {
    return { source: path === programs.command ? programs.realCommand : path, destination: path };
  });
}

/** What a bundle's mounts are made of. */
export interface BundleFolders {
  /** The folder that the mounts are put into. */
  readonly root: string;
  /** A file without a byte, which stands in the place of one that is hidden. */
  readonly emptyFile: string;
}

/** What `config.json` holds. */
export function bundleConfig(settings: GvisorSettings, programs: Programs, { root, emptyFile }: BundleFolders): object {
  const { cwd, env, args, tmpBytesMax } = settings;
  const memory: readonly Mount[] = [
    { destination: "/proc", type: "proc", source: "proc" },
    { destination: "/dev", type: "tmpfs", source: "tmpfs" },
    {
      destination: "/tmp",
      type: "tmpfs",
      source: "tmpfs",
      options: ["nosuid", "nodev", "mode=1777", `size=${Math.ceil(tmpBytesMax / 1024)}k`],
    },
  ];
  const host = bindsOf(settings, programs).map(({ source, destination }): Mount => {
    return { destination, type: "bind", source, options: ["rbind", "ro"] };
  });
  const empty = emptyPaths(settings, programs).map(({ kind, path }): Mount => {
    if (kind === "file") return { destination: path, type: "bind", source: emptyFile, options: ["rbind", "ro"] };
    return { destination: path, type: "tmpfs", source: "tmpfs", options: ["ro", "size=4k"] };
  });
  const variables = Object.entries({ ...env, [LISTEN_VARIABLE]: "stdio" }).map(([name, value]) => `${name}=${value}`);
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: ["/bin/sh", "-c", relayScript(settings), "sh", programs.command, ...args],
      env: variables,
      cwd,
      capabilities: { bounding: [], effective: [], inheritable: [], permitted: [] },
      rlimits: [
        { type: "RLIMIT_NOFILE", hard: FILES_OPEN_MAX, soft: FILES_OPEN_MAX },
        { type: "RLIMIT_CORE", hard: 0, soft: 0 },
      ],
      noNewPrivileges: true,
    },
    root: { path: root, readonly: true },
    hostname: "harness",
    mounts: [...memory, ...host, ...empty],
    linux: { namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })) },
  };
}

/**
 * The shell waits for the harness and leaves with its code, which ends the sandbox with all that is in it. A limit of processor time is
 * set inside, since gVisor counts for it only where a process asked for it.
 */
function relayScript({ cpuSecondsMax }: GvisorSettings): string {
  const limits = cpuSecondsMax === undefined ? "" : `ulimit -S -t ${cpuSecondsMax} && ulimit -H -t ${cpuSecondsMax + 1} && `;
  return `exec 3<&0; { cat <&3 & } | { exec 3<&-; ${limits}exec "$@"; }`;
}

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}
