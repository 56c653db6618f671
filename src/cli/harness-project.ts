/** The files of a new harness project, as `holdfast init` writes them. Pure. */

/** What a project is made of. */
export interface HarnessProject {
  /** The harness's name on the host: lowercase letters, digits and hyphens. */
  readonly name: string;
  readonly language: "typescript" | "python";
  /** What its manifest asks for: a version, or `file:` and the path of a source tree or of a packed package. */
  readonly dependency: string;
  /** Where the Python package lies, for `pip`: its name, or the path of its folder. */
  readonly pythonPackage: string;
}

/** The files by their path in the project's folder, and what to type there. */
export interface ProjectFiles {
  readonly files: Readonly<Record<string, string>>;
  readonly commands: readonly string[];
}

/** Writes nothing; says what is to be written. */
export function harnessProject(project: HarnessProject): ProjectFiles {
  const { name, language } = project;
  const command = language === "typescript" ? ["node", "harness.ts"] : ["python3", "agent.py"];
  const install = language === "typescript" ? "npm install" : "npm install && pip install -r requirements.txt";
  const commands = [
    install,
    "npx holdfast serve --config holdfast.json",
    `npx holdfast exec --harness ${name} --model echo --input "hello"`,
  ];
  const config = { harnesses: { [name]: { runtime: "process", command } } };
  const own = language === "typescript" ? typescriptFiles(project) : pythonFiles(project);
  return {
    files: { ...own, "holdfast.json": json(config), "README.md": readme(project, commands, command.join(" ")), ".gitignore": IGNORED },
    commands,
  };
}

/** A name for the harness from the name of a folder; another one where nothing of it can be used, or a server has it for its own. */
export function harnessNameOf(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 63)
    .replaceAll(/-+$/g, "");
  return name === "" || BUILT_IN.has(name) ? FALLBACK : name;
}

/** Names that a server has for its own: a config with one of them does not start. */
const BUILT_IN: ReadonlySet<string> = new Set(["agent", "chat", "echo", "history"]);
const FALLBACK = "my-agent";

const IGNORED = "node_modules/\n.holdfast/\n__pycache__/\n";

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function typescriptFiles({ name, dependency }: HarnessProject): Readonly<Record<string, string>> {
  const manifest = {
    name,
    version: "1.0.0",
    private: true,
    type: "module",
    engines: { node: ">=22.18" },
    scripts: { serve: "holdfast serve --config holdfast.json", start: "node harness.ts" },
    dependencies: { holdfast: dependency },
  };
  const compilerOptions = { target: "ES2024", module: "NodeNext", strict: true, noEmit: true, erasableSyntaxOnly: true, types: [] };
  return {
    "package.json": json(manifest),
    "tsconfig.json": json({ compilerOptions, include: ["*.ts"] }),
    "harness.ts": TYPESCRIPT.replaceAll("NAME", name),
  };
}

/** The server is Node's, and so a project in Python has a manifest of it too. */
function pythonFiles({ name, dependency, pythonPackage }: HarnessProject): Readonly<Record<string, string>> {
  const manifest = { name, version: "1.0.0", private: true, dependencies: { holdfast: dependency } };
  return { "package.json": json(manifest), "requirements.txt": `${pythonPackage}\n`, "agent.py": PYTHON.replaceAll("NAME", name) };
}

const TYPESCRIPT = `import { defineHarness, messageText, serveHarness } from "holdfast/harness";

const harness = defineHarness({
  id: "NAME",
  // Change it when the harness asks for other things: an interrupted turn is resumed by the same version only.
  version: "1",
  run: async (start, sink, { signal }) => {
    // The host calls the model and records its answer. Run again, the same call is served from the record.
    const { message, usage } = await sink.model({ model: start.model || "echo", messages: start.inputs }, { signal });
    await sink.usage(usage);
    await sink.output(\`The model said \${messageText(message).length} characters.\`);
  },
});

// On standard streams where the host starts this program, on 127.0.0.1:7070 where you do.
void serveHarness(harness);
`;

const PYTHON = `from holdfast_harness import Harness, Sink, Start, serve

# Change the version when the harness asks for other things: an interrupted turn is resumed by the same version only.
harness = Harness(id="NAME", version="1")


@harness.run
async def run(start: Start, sink: Sink) -> None:
    # The host calls the model and records its answer. Run again, the same call is served from the record.
    response = await sink.model(start.inputs, model=start.model or "echo")
    await sink.usage(response.usage)


# On standard streams where the host starts this program, on 127.0.0.1:7070 where you do.
serve(harness)
`;

function readme({ name, language, dependency }: HarnessProject, [install, serve, exec]: readonly string[], program: string): string {
  const file = language === "typescript" ? "harness.ts" : "agent.py";
  return `# ${name}

An agent for Holdfast. Its code is in \`${file}\`.

\`\`\`sh
${install}
${serve}
${exec}
\`\`\`

The first command is for once. The second is the server: it reads \`holdfast.json\`, keeps its data in \`.holdfast\` here, and starts the agent
for each session. The third, in another terminal, runs a turn in a new session and prints what is recorded; \`--model\` names a model that the
server has. Where another server runs already, say \`--listen 127.0.0.1:9000\` to the second, and \`--server 127.0.0.1:9000\` to the third.
${dependency.startsWith("file:") ? FROM_A_PATH : ""}
What the agent throws is in the server's log, which is its standard error: \`what a harness that threw wrote to standard error\`.

An agent that runs by itself, for many sessions, is registered while the server runs, under a name that is not in \`holdfast.json\`. It is
started in a terminal of its own:

\`\`\`sh
HOLDFAST_HARNESS_LISTEN=127.0.0.1:7070 ${program}
npx holdfast harness register ${registeredName(name)} --address 127.0.0.1:7070
npx holdfast exec --harness ${registeredName(name)} --model echo --input "hello"
\`\`\`
`;
}

const FROM_A_PATH = `
Holdfast is on no package registry yet: this project takes it from where the copy lies that wrote it. On another machine, run \`npm pack\` in a clone of
Holdfast and put the path of the file that it makes in its place, or the path of \`sdks/python\` for a project in Python.
`;

/** The name of the agent that runs by itself; the config's own cannot be registered. */
function registeredName(name: string): string {
  return `${name.slice(0, 58).replace(/-+$/, "")}-live`;
}
