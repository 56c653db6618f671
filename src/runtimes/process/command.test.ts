import { describe, expect, it } from "vitest";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { commandOf, type Programs } from "./command.ts";
import { processSettings, type ProcessRuntimeOptions } from "./options.ts";

const PROGRAMS: Programs = { command: "/opt/agent", realCommand: "/opt/agent-2", bubblewrap: undefined };

const settings = (options: Partial<ProcessRuntimeOptions> = {}, hostEnv = {}) =>
  processSettings(
    { command: "agent", args: ["a b", "$c"], cwd: "/srv", ports: { clock: systemClock, random: cryptoRandom }, ...options },
    hostEnv,
  );

describe("what is started for a child", () => {
  it("is the command itself where nothing is asked of it", () => {
    expect(commandOf(settings(), PROGRAMS, undefined)).toEqual({ file: "/opt/agent", args: ["a b", "$c"] });
  });

  it("is the shell that sets the limits and becomes the command; arguments stay arguments", () => {
    expect(commandOf(settings({ memoryBytesMax: 1_048_576, cpuSecondsMax: 3 }), PROGRAMS, undefined)).toEqual({
      file: "/bin/sh",
      args: ["-c", 'ulimit -c 0 && ulimit -d 1024 && ulimit -S -t 3 && ulimit -H -t 4 && exec "$@"', "sh", "/opt/agent", "a b", "$c"],
    });
  });

  it("is bubblewrap where it is confined; no value of the environment is among the arguments", () => {
    const confined = settings({ confine: true, env: { TOKEN: "secret" } });
    const { file, args } = commandOf(confined, { ...PROGRAMS, bubblewrap: "/usr/bin/bwrap" }, "/tmp/holdfast-1");
    expect(file).toBe("/usr/bin/bwrap");
    expect(args.slice(-4)).toEqual(["--", "/opt/agent", "a b", "$c"]);
    const text = args.join(" ");
    for (const part of [
      "--unshare-all",
      "--die-with-parent",
      "--ro-bind /srv /srv",
      "--ro-bind /opt/agent-2 /opt/agent",
      "--remount-ro /",
    ]) {
      expect(text).toContain(part);
    }
    expect(text).toContain("--bind /tmp/holdfast-1 /tmp/holdfast-1");
    expect(text).not.toContain("secret");
  });

  it("has of the host's environment what is listed, and what is given goes first", () => {
    const host = { PATH: "/bin", HOME: "/root", SECRET: "x", LANG: "C" };
    expect(settings({}, host).env).toEqual({ PATH: "/bin" });
    expect(settings({ inheritEnv: ["LANG"], env: { PATH: "/usr/bin", A: "1" } }, host).env).toEqual({
      PATH: "/usr/bin",
      LANG: "C",
      A: "1",
    });
  });
});
