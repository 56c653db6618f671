/**
 * The one table of the layers: which project may import which. The lint rules read it, and a test holds every project's
 * TypeScript references and `types` equal to it, so that the compiler and the linter refuse the same imports.
 *
 * Invariants (checked by `table.test.ts`):
 * - Imports go to a lower layer. Within a layer they go only along SAME_LAYER, and nowhere in a circle.
 * - Below the server nobody but the server sees an adapter (a store, a harness, a model provider).
 * - A core project runs anywhere JavaScript does: no `node:` import, no clock, no timer, no randomness of its own.
 */

/** One project: a folder under src with a tsconfig.json. */
export interface Project {
  /** The height in the building; imports go down. */
  readonly layer: number;
  /** Whether the project is pure core or may use Node. */
  readonly kind: "core" | "node";
  /** The projects that it may import, all of them: what these import in turn is not allowed by it. */
  readonly imports: readonly string[];
}

/** The projects by their folder under src. */
export const PROJECTS: Readonly<Record<string, Project>> = {
  base: { layer: 0, kind: "core", imports: [] },
  gen: { layer: 0, kind: "core", imports: [] },

  canon: { layer: 1, kind: "core", imports: ["base", "gen"] },
  spi: { layer: 1, kind: "core", imports: ["base", "gen"] },
  journal: { layer: 1, kind: "core", imports: ["base", "gen", "canon"] },
  archive: { layer: 1, kind: "core", imports: ["base", "gen", "canon", "journal"] },
  grpc: { layer: 1, kind: "node", imports: ["base", "gen"] },

  controller: { layer: 2, kind: "core", imports: ["base", "gen", "canon", "journal", "spi"] },
  placement: { layer: 2, kind: "core", imports: ["base", "gen", "canon", "journal", "spi"] },
  identity: { layer: 2, kind: "core", imports: ["base", "gen", "spi"] },

  node: { layer: 3, kind: "node", imports: ["base"] },
  "stores/memory": { layer: 3, kind: "core", imports: ["base", "gen", "canon", "journal"] },
  "stores/sqlite": { layer: 3, kind: "node", imports: ["base", "gen", "canon", "journal", "node"] },
  harnesses: { layer: 3, kind: "core", imports: ["base", "gen", "canon", "spi"] },
  models: { layer: 3, kind: "node", imports: ["base", "gen", "canon", "spi"] },
  tools: { layer: 3, kind: "node", imports: ["base", "gen", "spi"] },
  "harness-wire": { layer: 3, kind: "core", imports: ["base", "gen", "canon", "spi"] },
  "harness-wire/node": { layer: 3, kind: "node", imports: ["base", "gen", "spi", "grpc", "harness-wire"] },
  "stores/own-file": { layer: 3, kind: "node", imports: ["base"] },
  "stores/registry": { layer: 3, kind: "node", imports: ["base", "gen", "spi", "stores/own-file"] },
  "stores/environments": { layer: 3, kind: "node", imports: ["base", "spi", "stores/own-file"] },
  "stores/notes": { layer: 3, kind: "node", imports: ["base", "spi", "stores/own-file"] },
  "stores/blobs": { layer: 3, kind: "node", imports: ["base", "spi", "node"] },
  "runtimes/local": { layer: 3, kind: "core", imports: ["base", "gen", "spi"] },
  "runtimes/process": { layer: 3, kind: "node", imports: ["base", "gen", "spi", "node", "harness-wire", "harness-wire/node"] },
  "runtimes/remote": { layer: 3, kind: "node", imports: ["base", "gen", "spi", "grpc", "harness-wire", "harness-wire/node"] },
  "runtimes/quickjs": { layer: 3, kind: "node", imports: ["base", "gen", "spi", "harness-wire"] },
  "runtimes/gvisor": { layer: 3, kind: "node", imports: ["base", "gen", "spi", "node", "harness-wire", "harness-wire/node"] },

  service: { layer: 4, kind: "core", imports: ["base", "gen", "canon", "journal", "archive", "spi", "controller", "placement"] },
  gateway: {
    layer: 4,
    kind: "node",
    imports: ["base", "gen", "canon", "journal", "archive", "spi", "controller", "placement", "service", "grpc"],
  },

  server: {
    layer: 5,
    kind: "node",
    imports: [
      "base",
      "gen",
      "canon",
      "journal",
      "spi",
      "controller",
      "placement",
      "service",
      "gateway",
      "grpc",
      "node",
      "stores/memory",
      "stores/sqlite",
      "harnesses",
      "models",
      "tools",
      "identity",
      "harness-wire",
      "harness-wire/node",
      "stores/blobs",
      "stores/registry",
      "stores/environments",
      "stores/notes",
      "runtimes/local",
      "runtimes/process",
      "runtimes/remote",
      "runtimes/quickjs",
      "runtimes/gvisor",
    ],
  },

  client: { layer: 6, kind: "core", imports: ["base", "gen"] },
  "client/node": { layer: 6, kind: "node", imports: ["base", "gen", "client", "grpc", "node"] },
  "harness-sdk": { layer: 6, kind: "core", imports: ["base", "gen", "spi", "harness-wire"] },
  "harness-sdk/node": {
    layer: 6,
    kind: "node",
    imports: ["base", "gen", "spi", "grpc", "harness-wire", "harness-wire/node", "harness-sdk"],
  },
  testing: {
    layer: 6,
    kind: "node",
    imports: [
      "base",
      "gen",
      "canon",
      "journal",
      "archive",
      "spi",
      "grpc",
      "controller",
      "placement",
      "service",
      "client",
      "harness-wire",
      "harness-wire/node",
      "harness-sdk",
      "harness-sdk/node",
    ],
  },
  cli: {
    layer: 7,
    kind: "node",
    imports: ["base", "gen", "canon", "journal", "archive", "client", "client/node", "server", "node", "testing"],
  },
};

/** Imports within one layer: the chain stands on its hashing, a transport on its handlers, a platform on its core, a suite on a client. */
export const SAME_LAYER: readonly (readonly [from: string, to: string])[] = [
  ["journal", "canon"],
  ["archive", "canon"],
  ["archive", "journal"],
  ["gateway", "service"],
  ["client/node", "client"],
  ["testing", "client"],
  ["testing", "harness-sdk"],
  ["testing", "harness-sdk/node"],
  ["stores/registry", "stores/own-file"],
  ["stores/environments", "stores/own-file"],
  ["stores/notes", "stores/own-file"],
  ["harness-wire/node", "harness-wire"],
  ["stores/sqlite", "node"],
  ["stores/blobs", "node"],
  ["runtimes/process", "node"],
  ["runtimes/process", "harness-wire"],
  ["runtimes/process", "harness-wire/node"],
  ["runtimes/remote", "harness-wire"],
  ["runtimes/remote", "harness-wire/node"],
  ["runtimes/quickjs", "harness-wire"],
  ["runtimes/gvisor", "node"],
  ["runtimes/gvisor", "harness-wire"],
  ["runtimes/gvisor", "harness-wire/node"],
  ["harness-sdk/node", "harness-sdk"],
];

/** The adapters: only the server may import one. */
export const ADAPTERS: readonly string[] = [
  "stores/memory",
  "stores/sqlite",
  "stores/blobs",
  "stores/registry",
  "stores/environments",
  "stores/notes",
  "harnesses",
  "models",
  "tools",
  "runtimes/local",
  "runtimes/process",
  "runtimes/remote",
  "runtimes/quickjs",
  "runtimes/gvisor",
];

/** The packages that a core project may import, and whatever lies under them. */
export const CORE_PACKAGES: readonly string[] = ["@bufbuild/protobuf"];

/** File names that say nothing about what is in the file. */
export const EMPTY_NAMES: readonly string[] = ["util", "utils", "helper", "helpers", "manager", "managers", "misc"];

/** The project that a file under src belongs to (`client/node/dial.ts` → `client/node`), or undefined. */
export function projectOf(pathUnderSrc: string): string | undefined {
  const folders = pathUnderSrc.split("/").slice(0, -1);
  for (let depth = folders.length; depth > 0; depth--) {
    const name = folders.slice(0, depth).join("/");
    if (PROJECTS[name] !== undefined) return name;
  }
  return undefined;
}
