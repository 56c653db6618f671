/**
 * Sees to it that nothing of a child outlives the host, however the host ends: a shell that knows the process groups of the children and the
 * folders of their sockets, and kills and removes them when its standard input ends, which the kernel does for a host that was killed.
 *
 * A child that reads its own standard input sees the same end and leaves by itself; this is for the one that does not.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import type { Log } from "../../base/ports.ts";

const SCRIPT = `
trap '' TERM INT HUP
live=' '
while IFS= read -r line; do
  it="\${line#??}"
  case "$line" in
    "+ "*) live="$live$it " ;;
    "- "*) case "$live" in *" $it "*) live="\${live%%" $it "*} \${live#*" $it "}" ;; esac ;;
    "m "*) set -- "$@" "$it" ;;
    "r "*) for folder in "$@"; do shift; [ "$folder" = "$it" ] || set -- "$@" "$folder"; done ;;
  esac
done
for group in $live; do kill -s KILL -- "-$group" 2>/dev/null; done
for folder in "$@"; do rm -rf -- "$folder"; done
`;

/** One shell for all children of a runtime. */
export class Watchdog implements Disposable {
  readonly #log: Log;
  readonly #groups = new Set<number>();
  readonly #folders = new Set<string>();
  #shell: ChildProcess | undefined;
  #isDisposed = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** The shell's process id, while it runs. */
  get pid(): number | undefined {
    return this.#shell?.pid;
  }

  /** The group dies with the host. */
  watch(group: number): void {
    this.#groups.add(group);
    this.#begin(`+ ${group}\n`);
  }

  /** The group is gone: its number may soon be another's. */
  forget(group: number): void {
    if (this.#groups.delete(group)) this.#tell(`- ${group}\n`);
  }

  /** The folder, an absolute path, is removed with the host. */
  watchFolder(folder: string): void {
    // A line tells of one folder.
    if (folder.includes("\n")) return;
    this.#folders.add(folder);
    this.#begin(`m ${folder}\n`);
  }

  /** The folder is gone. */
  forgetFolder(folder: string): void {
    if (this.#folders.delete(folder)) this.#tell(`r ${folder}\n`);
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#shell?.stdin?.end();
  }

  #begin(line: string): void {
    if (this.#shell === undefined) this.#start();
    else this.#tell(line);
  }

  #start(): void {
    if (this.#isDisposed) return;
    // In a session of its own: what is sent to the host's group does not reach it.
    const shell: ChildProcess = spawn("/bin/sh", ["-c", SCRIPT], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
      env: {},
      cwd: "/",
    });
    this.#shell = shell;
    shell.on("error", () => this.#lost(shell));
    shell.on("exit", () => this.#lost(shell));
    // Absent where the shell could not be started.
    shell.stdin?.on("error", () => undefined);
    // It must not keep the host alive.
    shell.unref();
    if (shell.stdin instanceof Socket) shell.stdin.unref();
    this.#tell([...[...this.#groups].map((group) => `+ ${group}\n`), ...[...this.#folders].map((folder) => `m ${folder}\n`)].join(""));
  }

  #lost(shell: ChildProcess): void {
    if (this.#shell !== shell) return;
    this.#shell = undefined;
    if (this.#isDisposed) return;
    // The next child starts another, which is told of all.
    this.#log.log("warn", "the shell that ends children with the host is gone; the next child starts another");
  }

  #tell(lines: string): void {
    this.#shell?.stdin?.write(lines);
  }
}
