/**
 * Confinement by bubblewrap: namespaces of its own for everything, and a file system that is put together.
 *
 * What a confined child has: no network but a loopback of its own; processes of its own only; the system's programs and libraries and
 * its working directory, read-only; a `/tmp` and a `/dev/shm` of a bounded size in memory, which end with it, and nothing else that can be
 * written; no capabilities. It dies with the host. Its environment is
 * the one that bubblewrap was started with, so that no value of it stands in a list of arguments, which every user can read.
 */

import { lstatSync, readlinkSync } from "node:fs";
import type { Programs } from "./command.ts";
import { masksOf, type Bind, type Mask } from "../../node/index.ts";
import type { ProcessSettings } from "./options.ts";

/** Where programs and libraries are. On most systems all but the first are links into it. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/** What programs need of the configuration to start: where libraries are, which alternative is meant, the time zone. */
const CONFIGURATION = ["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"];

const TMP_BYTES_MAX = 64 * 1024 * 1024;

/** The descriptor on which bubblewrap tells the process id of what it has confined. */
export const INFO_FD = 3;

/** The arguments of bubblewrap, up to the command. */
export function confinedArguments(
  { confinement = {}, cwd, hidden }: ProcessSettings,
  { command, realCommand }: Programs,
  socketFolder: string | undefined,
): readonly string[] {
  const { readOnly = [], writable = [], tmpBytesMax = TMP_BYTES_MAX } = confinement;
  const binds: readonly (Bind & { readonly kind: "--bind" | "--ro-bind" })[] = [
    { kind: "--ro-bind", ...seenAsIs(cwd) },
    ...(isSystem(command) ? [] : [{ kind: "--ro-bind", source: realCommand, destination: command } as const]),
    ...readOnly.map((path) => ({ kind: "--ro-bind", ...seenAsIs(path) }) as const),
    ...writable.map((path) => ({ kind: "--bind", ...seenAsIs(path) }) as const),
  ];
  const options: readonly (readonly string[])[] = [
    // The child is started in a session of its own already, and has no terminal. Its process group stays that of bubblewrap, so
    // that pausing the group pauses it.
    ["--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "harness", "--info-fd", String(INFO_FD)],
    ...SYSTEM.map(systemFolder),
    ...CONFIGURATION.map((path) => ["--ro-bind-try", path, path]),
    ["--proc", "/proc", "--dev", "/dev", ...boundedMemory("/dev/shm", tmpBytesMax), ...boundedMemory("/tmp", tmpBytesMax)],
    ...binds.map(({ kind, source, destination }) => [kind, source, destination]),
    ...masksOf(hidden, [...SYSTEM.filter(isFolderOfItsOwn).map(seenAsIs), ...binds]).map(masked),
    socketFolder === undefined ? [] : ["--bind", socketFolder, socketFolder],
    // A child of root's is root to the kernel's own settings in `/proc/sys`, though it has no capability. The other two are memory without a
    // bound; the devices in `/dev`, and what is mounted in either, stay as they are.
    ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd, "--"],
  ];
  return options.flat();
}

function seenAsIs(path: string): Bind {
  return { source: path, destination: path };
}

/** Nothing is read from what is hidden, and nothing is kept of what is written to it. */
function masked({ kind, path }: Mask): readonly string[] {
  if (kind === "file") return ["--dev-bind", "/dev/null", path];
  return [...boundedMemory(path, 4096), "--remount-ro", path];
}

function boundedMemory(path: string, bytesMax: number): readonly string[] {
  return ["--size", String(bytesMax), "--tmpfs", path];
}

function systemFolder(path: string): readonly string[] {
  const link = linkAt(path);
  if (link === undefined) return ["--ro-bind-try", path, path];
  return ["--symlink", link, path];
}

function isFolderOfItsOwn(path: string): boolean {
  return linkAt(path) === undefined;
}

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

function isSystem(path: string): boolean {
  return SYSTEM.some((folder) => path.startsWith(`${folder}/`));
}
