/** The files of a new harness project, as `holdfast init` writes them. Pure. */

/** What a project is made of. */
export interface HarnessProject {
  /** The harness's name on the host: lowercase letters, digits and hyphens. */
  readonly name: string;
  readonly language: "typescript" | "python";
  /** The version of Holdfast that writes it. */
  readonly version: string;
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
  const install = language === "typescript" ? "npm install" : "pip install -r requirements.txt";
  const commands = [
    install,
    "npx holdfast serve --config holdfast.json",
    `npx holdfast exec --harness ${name} --model echo --input "hello"`,
  ];
  const config = { harnesses: { [name]: { runtime: "process", command } } };
  const own = language === "typescript" ? typescriptFiles(project) : pythonFiles(name);
  return {
    files: { ...own, "holdfast.json": json(config), "README.md": readme(project, commands, command.join(" ")), ".gitignore": IGNORED },
    commands,
  };
}

/** A name for the harness from the name of a folder; `agent` where nothing of it can be used. */
export function harnessNameOf(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 63)
    .replaceAll(/-+$/g, "");
  return name === "" || BUILT_IN.has(name) ? "agent" : name;
}

/** Names that a server has for its own. */
const BUILT_IN: ReadonlySet<string> = new Set(["echo", "chat"]);

const IGNORED = "node_modules/\n.holdfast/\n__pycache__/\n";

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function typescriptFiles({ name, version }: HarnessProject): Readonly<Record<string, string>> {
  const manifest = {
    name,
    version: "1.0.0",
    private: true,
    type: "module",
    engines: { node: ">=22.18" },
    scripts: { serve: "holdfast serve --config holdfast.json", start: "node harness.ts" },
    dependencies: { holdfast: `^${version}` },
  };
  const compilerOptions = { target: "ES2024", module: "NodeNext", strict: true, noEmit: true, erasableSyntaxOnly: true, types: [] };
  return {
    "package.json": json(manifest),
    "tsconfig.json": json({ compilerOptions, include: ["*.ts"] }),
    "harness.ts": TYPESCRIPT.replaceAll("NAME", name),
  };
}

function pythonFiles(name: string): Readonly<Record<string, string>> {
  return { "requirements.txt": "holdfast-harness\n", "agent.py": PYTHON.replaceAll("NAME", name) };
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

function readme({ name, language }: HarnessProject, [install, serve, exec]: readonly string[], program: string): string {
  const file = language === "typescript" ? "harness.ts" : "agent.py";
  const packages =
    language === "typescript"
      ? ""
      : "\nThe package `holdfast-harness` is in Holdfast's repository, in `sdks/python`: `pip install PATH/sdks/python`.\n";
  return `# ${name}

An agent for Holdfast. Its code is in \`${file}\`.

\`\`\`sh
${install}
${serve}
${exec}
\`\`\`

The first command is for once. The second is the server: it reads \`holdfast.json\` and starts the agent for each session. The third, in
another terminal, runs a turn in a new session and prints what is recorded; \`--model\` names a model that the server has.
${packages}
An agent that runs by itself, for many sessions, is registered while the server runs:

\`\`\`sh
HOLDFAST_HARNESS_LISTEN=127.0.0.1:7070 ${program}
npx holdfast harness register ${name} --address 127.0.0.1:7070
\`\`\`
`;
}
