/** The console in `examples/greenhouse`, as it stands there: a client of the interactive door that is killed, and whose server is. */

import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { TemporaryFolder } from "../src/testing/temporary-folder.ts";
import { cleanEnvironment, command, start, type RunningCommand } from "./support/command.ts";

const ROOT = join(import.meta.dirname, "..");
const QUESTION = "May it? [y/n]";

function projectIn(folder: TemporaryFolder): string {
  const project = join(folder.path, "greenhouse");
  cpSync(join(ROOT, "examples", "greenhouse"), project, { recursive: true });
  // What npm would have installed.
  mkdirSync(join(project, "node_modules"));
  symlinkSync(ROOT, join(project, "node_modules", "holdfast"), "dir");
  return project;
}

/** A port that is free now: a server that is started again has to be where it was. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** The console, with somebody at its keyboard. */
class Console {
  readonly child: ChildProcessWithoutNullStreams;
  #text = "";
  readonly #watchers = new Set<() => void>();

  constructor(cwd: string, args: readonly string[]) {
    this.child = spawn(process.execPath, ["console.ts", ...args], { cwd, env: cleanEnvironment() });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.#text += text;
        for (const look of this.#watchers) look();
      });
    }
    this.child.on("close", () => {
      for (const look of this.#watchers) look();
    });
    onTestFinished(() => void this.child.kill("SIGKILL"));
  }

  /** Resolves when the console has ended. */
  get ended(): Promise<void> {
    return new Promise((resolve) => {
      if (this.child.exitCode !== null || this.child.signalCode !== null) resolve();
      else this.child.once("close", () => resolve());
    });
  }

  /** Resolves with all that was said once that has `what` so often. */
  says(what: string, times = 1): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        if (this.#text.split(what).length > times) resolve(this.#text);
        else if (this.child.exitCode === null && this.child.signalCode === null) return;
        else reject(new Error(`the console has ended and did not say ${JSON.stringify(what)}: ${this.#text}`));
        this.#watchers.delete(look);
      };
      this.#watchers.add(look);
      look();
    });
  }
}

interface World {
  readonly cwd: string;
  readonly address: string;
  serve(): Promise<RunningCommand>;
}

async function world(folder: TemporaryFolder): Promise<World> {
  const cwd = projectIn(folder);
  const listen = `127.0.0.1:${await freePort()}`;
  const serve = async (): Promise<RunningCommand> => {
    const server = start(["serve", "--listen", listen, "--config", "holdfast.json", "--model", "script:script.yaml"], { cwd });
    await server.said("listening");
    return server;
  };
  return { cwd, address: `http://${listen}`, serve };
}

/** What the journal has of calls, decisions and the end. */
async function recorded({ cwd, address }: World, uid: string): Promise<readonly string[]> {
  const { stdout } = await command(["replay", "--server", address, uid], { cwd });
  return [...stdout.matchAll(/^ +\d+ {2}(TOOL_CALL +\S+|APPROVAL_\w+|END +\S+)/gm)].map(([, found]) => found!.replaceAll(/ +/g, " "));
}

const ASKED = ["TOOL_CALL read_sensors", "TOOL_CALL set_windows", "APPROVAL_REQUEST", "APPROVAL_RESULT"];
const WHOLE = [...ASKED, "TOOL_CALL read_sensors", "END COMPLETED"];

const sessionOf = (text: string): string => /session (\S+)/.exec(text)?.[1] ?? "";

describe("the console of a greenhouse", () => {
  it("is typed", () => {
    using folder = new TemporaryFolder();
    const tsc = join(ROOT, "node_modules", ".bin", "tsc");
    expect(() => execFileSync(tsc, ["-p", projectIn(folder)], { stdio: "pipe", encoding: "utf8" })).not.toThrow();
  });

  it("goes on after its server was killed while the agent asked: the agent looks again, and asks again", async () => {
    using folder = new TemporaryFolder();
    const place = await world(folder);
    const first = await place.serve();
    const person = new Console(place.cwd, ["--server", place.address, "It is hot in here."]);
    await person.says(QUESTION);
    first.child.kill("SIGKILL");
    await person.says("the line is down");
    await place.serve();
    await person.says("the line is up again");
    await person.says(QUESTION, 2);
    person.child.stdin.write("y\n");
    await person.says("▸ read_sensors", 2);
    await person.says(QUESTION, 3);
    person.child.stdin.write("y\n");
    const text = await person.says("end_turn");
    expect(text.split("the line is down").length - 1).toBe(1);
    expect(text.split("▸ set_windows").length - 1).toBe(1);
    expect(text).toContain("The windows are open by half and it is 24 degrees.");
    expect(await recorded(place, sessionOf(text))).toEqual([...ASKED, ...WHOLE]);
  });

  it("started again after it was killed, asks again, and somebody else may answer", async () => {
    using folder = new TemporaryFolder();
    const place = await world(folder);
    await place.serve();
    const killed = new Console(place.cwd, ["--server", place.address, "It is hot in here."]);
    const uid = sessionOf(await killed.says(QUESTION));
    killed.child.kill("SIGKILL");
    const person = new Console(place.cwd, ["--server", place.address, "--session", uid]);
    await person.says(QUESTION);
    expect(await command(["approve", "--server", place.address, uid], { cwd: place.cwd })).toMatchObject({ exitCode: 0 });
    const text = await person.says("end_turn");
    expect(text).toContain("▸ set_windows");
    expect(await recorded(place, uid)).toEqual(WHOLE);
    expect(await command(["verify", "--server", place.address, uid], { cwd: place.cwd })).toMatchObject({ exitCode: 0 });
    const late = new Console(place.cwd, ["--server", place.address, "--session", uid]);
    await late.says("nothing is under way in this session");
    await late.ended;
  });
});
