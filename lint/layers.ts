/**
 * The lint rules of this repository's own. Each is a pure reading of one file; what is allowed stands in `table.ts`.
 *
 * - holdfast/layers: imports between projects, as the table has them
 * - holdfast/core-imports: what a core project may import from outside src
 * - holdfast/core-clock: `new Date()`, `Date()` and timers in a core project
 * - holdfast/no-double-assertion: `x as unknown as T`, which switches the compiler off
 * - holdfast/file-name: a name that says nothing
 *
 * Tests may import and use anything, except that a test's name must say something too.
 */

import { isBuiltin } from "node:module";
import { posix, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { RuleTester } from "oxlint/plugins-dev";
import { CORE_PACKAGES, EMPTY_NAMES, PROJECTS, projectOf, type Project } from "./table.ts";

type Rule = Parameters<RuleTester["run"]>[1];
type Context = Parameters<NonNullable<Rule["create"]>>[0];
type Visitor = ReturnType<NonNullable<Rule["create"]>>;
type Reportable = NonNullable<Parameters<Context["report"]>[0]["node"]>;

const SRC = fileURLToPath(new URL("../src/", import.meta.url))
  .split(sep)
  .join("/");
const TIMERS = new Set(["setTimeout", "setInterval", "setImmediate"]);

/** Where the file stands, for rules that look at production code under src; undefined for any other file. */
function placeOf(context: Context): { readonly path: string; readonly name: string; readonly project: Project } | undefined {
  const file = context.filename.split(sep).join("/");
  if (!file.startsWith(SRC) || file.endsWith(".test.ts")) return undefined;
  const path = file.slice(SRC.length);
  const name = projectOf(path);
  const project = name === undefined ? undefined : PROJECTS[name];
  return name === undefined || project === undefined ? undefined : { path, name, project };
}

/** Calls `visit` with every module that the file names: imports, re-exports, dynamic imports, import types, worker files. */
function eachModule(visit: (specifier: string, node: Reportable) => void): Visitor {
  const literal = (source: unknown, node: Reportable): void => {
    if (isRecord(source) && source["type"] === "Literal" && typeof source["value"] === "string") visit(source["value"], node);
  };
  return {
    ImportDeclaration: (node) => literal(node.source, node),
    ExportNamedDeclaration: (node) => literal(node.source, node),
    ExportAllDeclaration: (node) => literal(node.source, node),
    ImportExpression: (node) => literal(node.source, node),
    TSImportType: (node) => literal(node.source, node),
    NewExpression: (node) => {
      const [path, base] = node.arguments;
      const isUrl = node.callee.type === "Identifier" && node.callee.name === "URL" && base?.type === "MemberExpression";
      if (isUrl && base.object.type === "MetaProperty") literal(path, node);
    },
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

const layers: Rule = {
  create(context) {
    const place = placeOf(context);
    if (place === undefined) return {};
    return eachModule((specifier, node) => {
      if (!specifier.startsWith(".")) return;
      const target = posix.normalize(posix.join(posix.dirname(place.path), specifier));
      const name = projectOf(target);
      if (name === place.name || place.project.imports.includes(name ?? "")) return;
      context.report({ node, message: refusal(place.name, place.project, name) });
    });
  },
};

function refusal(from: string, project: Project, to: string | undefined): string {
  if (to === undefined) return `src/${from} may import from projects under src only`;
  const other = PROJECTS[to];
  const why =
    other === undefined || other.layer > project.layer
      ? "it lies above"
      : other.layer === project.layer
        ? "it is a sibling"
        : "it is below, but not among the layers that this one may see";
  return `src/${from} must not import src/${to}: ${why} (lint/table.ts)`;
}

const coreImports: Rule = {
  create(context) {
    const place = placeOf(context);
    if (place === undefined || place.project.kind !== "core") return {};
    return eachModule((specifier, node) => {
      if (specifier.startsWith(".")) return;
      if (CORE_PACKAGES.some((name) => specifier === name || specifier.startsWith(`${name}/`))) return;
      const what = isBuiltin(specifier) ? "Node" : "this package";
      context.report({ node, message: `src/${place.name} is core: it must not import ${what} ("${specifier}"); use a port` });
    });
  },
};

const coreClock: Rule = {
  create(context) {
    const place = placeOf(context);
    if (place === undefined || place.project.kind !== "core") return {};
    const refuse = (node: Reportable, what: string): void => {
      context.report({ node, message: `src/${place.name} is core: ${what} reads the world's clock; use the Clock port` });
    };
    const isGlobal = (node: Parameters<Context["sourceCode"]["isGlobalReference"]>[0]): boolean =>
      context.sourceCode.isGlobalReference(node);
    return {
      NewExpression(node) {
        const isDate = node.callee.type === "Identifier" && node.callee.name === "Date" && isGlobal(node.callee);
        if (isDate && node.arguments.length === 0) refuse(node, "new Date()");
      },
      CallExpression(node) {
        const isDate = node.callee.type === "Identifier" && node.callee.name === "Date" && isGlobal(node.callee);
        if (isDate) refuse(node, "Date()");
      },
      Program() {
        for (const { identifier } of globalReferences(context)) {
          if (TIMERS.has(identifier.name)) refuse(identifier, identifier.name);
        }
      },
      MemberExpression(node) {
        const isGlobalThis = node.object.type === "Identifier" && node.object.name === "globalThis";
        const name = node.property.type === "Identifier" ? node.property.name : undefined;
        if (isGlobalThis && name !== undefined && TIMERS.has(name)) refuse(node, name);
      },
    };
  },
};

/** Every use of a name that the file does not declare. */
function globalReferences(context: Context): NonNullable<Context["sourceCode"]["scopeManager"]["globalScope"]>["through"] {
  const scope = context.sourceCode.scopeManager.globalScope;
  if (scope === null) return [];
  const builtIn = scope.variables.filter((variable) => variable.defs.length === 0);
  return [...scope.through, ...builtIn.flatMap((variable) => variable.references)];
}

const noDoubleAssertion: Rule = {
  create(context) {
    return {
      TSAsExpression(node) {
        if (node.expression.type !== "TSAsExpression") return;
        context.report({ node, message: "an assertion of an assertion proves nothing: narrow the value, or check it" });
      },
    };
  },
};

const fileName: Rule = {
  create(context) {
    const base = posix.basename(context.filename.split(sep).join("/"));
    const words = base.replace(/\.(test|process|d|ts|js|mjs)\b/g, "").split(/[-_.]|(?=[A-Z])/);
    const empty = words.find((word) => EMPTY_NAMES.includes(word.toLowerCase()));
    if (empty === undefined) return {};
    return {
      Program(node) {
        context.report({ node, message: `"${base}" says nothing ("${empty}"): name the file after what it holds` });
      },
    };
  },
};

const plugin: { readonly meta: { readonly name: string }; readonly rules: Readonly<Record<string, Rule>> } = {
  meta: { name: "holdfast" },
  rules: {
    layers,
    "core-imports": coreImports,
    "core-clock": coreClock,
    "no-double-assertion": noDoubleAssertion,
    "file-name": fileName,
  },
};

export default plugin;
