import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { keepExports } from "./wasm-exports.ts";

const engine = new Uint8Array(readFileSync(createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm")));

/** WebAssembly as Node has it: its types are a browser's, and none of this project's. */
interface Wasm {
  readonly Module: { exports(module: object): readonly { readonly name: string }[] };
  compile(bytes: Uint8Array): Promise<object>;
}
const { WebAssembly: wasm } = globalThis as { WebAssembly?: Wasm };
const namesOf = async (module: Uint8Array) => wasm!.Module.exports(await wasm!.compile(module)).map(({ name }) => name);

describe("a module's exports", () => {
  it("are those that are kept, in their order; everything else of the module is as it was", async () => {
    const all = await namesOf(engine);
    const few = keepExports(engine, (name) => name.startsWith("qjs_"));
    expect(await namesOf(few)).toEqual(all.filter((name) => name.startsWith("qjs_")));
    expect(few.length).toBeLessThan(engine.length);
  });

  it("are all there, byte for byte, where all are kept", () => {
    expect(keepExports(engine, () => true)).toEqual(engine);
  });

  it("may be none", async () => {
    expect(await namesOf(keepExports(engine, () => false))).toEqual([]);
  });

  it("are not guessed at in a module that was cut off", () => {
    expect(() => keepExports(engine.subarray(0, engine.length - 5), () => true)).toThrow(RangeError);
    expect(() => keepExports(engine.subarray(0, 9), () => true)).toThrow(RangeError);
  });
});
