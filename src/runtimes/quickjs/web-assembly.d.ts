/** The part of WebAssembly's JavaScript interface that a VM needs; Node has it, its types leave it to those of browsers. */

declare namespace WebAssembly {
  /** Compiled code, which threads can be given. */
  interface Module {
    readonly [Symbol.toStringTag]: "WebAssembly.Module";
  }
  class Memory {
    constructor(descriptor: { readonly initial: number });
    readonly buffer: ArrayBuffer;
    grow(pages: number): number;
  }
  interface Global {
    value: unknown;
  }
  interface Table {
    readonly length: number;
  }
  interface Instance {
    readonly exports: object;
  }
  type ImportValue = unknown;
  function compile(bytes: Uint8Array): Promise<Module>;
}
