import { defineConfig } from "vitest/config";

/**
 * Three projects; of a run of several, one comes after the other.
 *
 * Unit and integration tests share their workers (a worker that is kept costs a ninth of a new one), so a test leaves no global state
 * behind. Tests that start whole processes end in `.process.test.ts` or live in `e2e/`: two files at a time, each in a worker of its own,
 * so that one works while another waits. The package test packs and installs the tarball, and is a step of its own in `npm test`.
 */
const PROCESSES = ["src/**/*.process.test.ts", "e2e/**/*.test.ts"];
const PACKAGE = ["e2e/package.test.ts"];
const NEVER = ["**/node_modules/**", "dist/**"];

export default defineConfig({
  test: {
    passWithNoTests: false,
    coverage: {
      provider: "v8",
      reporter: ["text", "html", "json-summary"],
      reportsDirectory: "coverage",
      include: ["src/**/*.ts"],
      exclude: ["src/gen/**", "src/**/*.test.ts", "src/**/*.d.ts"],
    },
    projects: [
      {
        test: {
          name: "unit",
          sequence: { groupOrder: 0 },
          include: ["src/**/*.test.ts", "lint/**/*.test.ts", "scripts/**/*.test.ts"],
          exclude: [...NEVER, ...PROCESSES],
          isolate: false,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: "process",
          sequence: { groupOrder: 1 },
          include: PROCESSES,
          exclude: [...NEVER, ...PACKAGE],
          maxWorkers: 2,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: "package",
          sequence: { groupOrder: 2 },
          include: PACKAGE,
          exclude: NEVER,
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
