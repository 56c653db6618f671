import { expect, it } from "vitest";
import { unknownScripts } from "./named-scripts.ts";

it("finds the scripts that a text names and package.json lacks", () => {
  const text = "Run `npm run lint`, then\n`npm run -s proto:lint` and npm run proto:check; `npm test`.\n";
  expect(unknownScripts("a.md", text, new Set(["lint", "proto:lint"]))).toEqual(['a.md:2: there is no script "proto:check"']);
});
