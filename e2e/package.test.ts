import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT, run } from "../scripts/run.ts";
import { installTarball, ownManifest, type Installed } from "./installed.ts";

let app: Installed;

beforeAll(async () => {
  app = await installTarball();
});

afterAll(() => app?.remove());

const { version, exports } = ownManifest();
const entries = Object.keys(exports).filter((name) => !name.includes("*") && !name.endsWith(".json"));

describe("the tarball", () => {
  it("holds the program, its types, the protocols and its papers", () => {
    const expected = ["package.json", "README.md", "CHANGELOG.md", "LICENSE", "bin/holdfast.mjs", "dist/cli/main.js"];
    const protocols = ["proto/agentsessions/v1/session.proto", "proto/roz/v1/agent.proto", "proto/holdfast/v1/journal.proto"];
    const verifier = "tools/verify/holdfast_verify.py";
    expect(app.tarball.files).toEqual(expect.arrayContaining([...expected, ...protocols, verifier]));
  });

  it("holds no test, no source, no build state", () => {
    const odd = app.tarball.files.filter((file) => /\.test\.|tsbuildinfo|(?<!\.d)\.ts$|binpb|^(?:src|e2e|lint|scripts|bench)\//.test(file));
    expect(odd).toEqual([]);
  });

  it("holds nothing whose source is gone", () => {
    const modules = app.tarball.files.filter((file) => file.startsWith("dist/") && file.endsWith(".js"));
    expect(modules.length).toBeGreaterThan(0);
    expect(modules.filter((file) => !existsSync(join(ROOT, file.replace(/^dist\//, "src/").replace(/\.js$/, ".ts"))))).toEqual([]);
  });

  it("runs nothing when it is installed", () => {
    const manifest = JSON.parse(readFileSync(join(app.folder, "node_modules/holdfast/package.json"), "utf8")) as {
      readonly scripts?: Readonly<Record<string, string>>;
    };
    const atInstall = ["preinstall", "install", "postinstall"].filter((name) => manifest.scripts?.[name] !== undefined);
    expect(atInstall).toEqual([]);
  });
});

describe("the command from the tarball", () => {
  it("tells its version", async () => {
    const { exitCode, output } = await app.command(["npx", "--no-install", "holdfast", "--version"]);
    expect({ exitCode, output: output.trim() }).toEqual({ exitCode: 0, output: version });
  });

  it("explains itself", async () => {
    const { exitCode, output } = await app.command(["npx", "--no-install", "holdfast", "--help"]);
    expect(exitCode).toBe(0);
    for (const command of ["serve", "exec", "list", "get", "replay", "verify", "tail"])
      expect(output).toMatch(new RegExp(`\\b${command}\\b`));
  });
});

describe("a session from the tarball", () => {
  interface Line {
    readonly session?: { readonly metadata?: { readonly uid?: string } };
    readonly record?: { readonly event?: { readonly kind?: string } };
  }

  async function holdfast(...args: readonly string[]): Promise<{ readonly exitCode: number; readonly output: string }> {
    const { exitCode, output } = await app.command(["npx", "--no-install", "holdfast", ...args]);
    return { exitCode, output };
  }

  it("is recorded in the folder where the command ran, goes on there, and verifies", async ({ skip }) => {
    if (await isServed("http://127.0.0.1:8080")) skip("a server that answers on the default port would be used instead of an embedded one");
    const first = await holdfast("exec", "--input", "hello", "--json");
    expect(first).toMatchObject({ exitCode: 0 });
    const lines = first.output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Line);
    expect(lines.at(-1)?.record?.event?.kind).toBe("EVENT_END");
    const uid = lines.find((line) => line.session !== undefined)?.session?.metadata?.uid ?? "";
    expect(readdirSync(join(app.folder, ".holdfast"))).not.toEqual([]);

    const second = await holdfast("exec", "--session", uid, "--input", "and again");
    expect(second).toEqual({ exitCode: 0, output: expect.stringContaining("and again") });
    expect(await holdfast("list")).toEqual({ exitCode: 0, output: expect.stringContaining(uid) });
    expect(await holdfast("replay", uid)).toEqual({ exitCode: 0, output: expect.stringMatching(/hello[^]*and again/) });
    expect(await holdfast("verify", uid)).toMatchObject({ exitCode: 0 });
  });
});

async function isServed(address: string): Promise<boolean> {
  try {
    return (await fetch(address, { signal: AbortSignal.timeout(1_000) })).status > 0;
  } catch {
    return false;
  }
}

describe("the exports of the tarball", () => {
  it.each(entries)("%s can be imported and has something in it", async (entry) => {
    const specifier = posix.join("holdfast", entry);
    const script = `const names = Object.keys(await import(${JSON.stringify(specifier)})); console.log(names.length > 0);`;
    const { exitCode, output } = await app.command(["node", "--input-type=module", "--eval", script]);
    expect({ exitCode, output: output.trim() }).toEqual({ exitCode: 0, output: "true" });
  });

  it("have types that a strict TypeScript project accepts", async () => {
    const lines = entries.map((entry, index) => `export * as e${index} from ${JSON.stringify(posix.join("holdfast", entry))};`);
    writeFileSync(join(app.folder, "app.ts"), `${lines.join("\n")}\n`);
    const compilerOptions = {
      strict: true,
      noEmit: true,
      target: "ES2024",
      lib: ["ES2024", "ESNext.Disposable", "DOM"],
      module: "NodeNext",
      moduleResolution: "NodeNext",
      types: ["node"],
      skipLibCheck: false,
    };
    writeFileSync(join(app.folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["app.ts"] }));
    const { output } = await run(["tsc", "-p", app.folder, "--pretty", "false"]);
    const ours = output.split("\n").filter((line) => /\bapp\.ts\(|node_modules\/holdfast\//.test(line));
    expect(ours).toEqual([]);
  });

  it("let the client into a browser: nothing that it reaches is Node's", () => {
    const dist = join(app.folder, "node_modules/holdfast/dist");
    const seen = new Set<string>();
    const outside = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      const text = readFileSync(join(dist, file), "utf8");
      const statements = /^(?:import|export)\b[^;"]*\bfrom "([^"]+)"|^import "([^"]+)"|\bimport\("([^"]+)"\)/gm;
      for (const [, from, bare, late] of text.matchAll(statements)) {
        const specifier = from ?? bare ?? late ?? "";
        if (specifier.startsWith(".")) visit(posix.join(posix.dirname(file), specifier));
        else outside.add(specifier);
      }
    };
    visit("client/index.js");
    expect(seen.size).toBeGreaterThan(5);
    expect([...outside].filter((specifier) => !specifier.startsWith("@bufbuild/protobuf"))).toEqual([]);
  });
});

describe("an old Node", () => {
  const old = oldNode();

  it.skipIf(old === undefined)(
    `is told what is needed, and nothing is imported${old === undefined ? " (no Node below 22.13 here)" : ""}`,
    async () => {
      const { exitCode, output } = await app.command([old ?? "", join(app.folder, "node_modules/holdfast/bin/holdfast.mjs"), "--version"]);
      expect(exitCode).toBe(1);
      expect(output).toMatch(/^holdfast: needs Node 22\.13 or newer; this is Node \d+\.\d+\.\d+ \[node-version\]\n$/);
    },
  );
});

/** A Node of this machine that is too old for the package. */
function oldNode(): string | undefined {
  return ["/usr/bin/node", "/usr/local/bin/node"].filter(existsSync).find((path) => {
    const [major = 0, minor = 0] = execFileSync(path, ["-p", "process.versions.node"], { encoding: "utf8" }).split(".").map(Number);
    return major < 22 || (major === 22 && minor < 13);
  });
}
