/** The part of WebAssembly's JavaScript interface that a VM needs; Node has it, its types leave it to those of browsers. */

declare namespace WebAssembly {
  /** Compiled code, which threads can be given. */
  class Module {
    private constructor();
    readonly [Symbol.toStringTag]: "WebAssembly.Module";
    static exports(module: Module): readonly { readonly name: string; readonly kind: string }[];
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
