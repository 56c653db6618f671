/** What tests of Holdfast and of its harnesses, stores and transports are made with. */

export * from "./agent-world.ts";
export * from "./conformance/index.ts";
export * from "./dialled-harnesses.ts";
export * from "./dying-store.ts";
export * from "./harness-wire/index.ts";
export * from "./forwarding-blobs.ts";
export * from "./host.ts";
export * from "./in-process.ts";
export * from "./journal-conformance/index.ts";
export * from "./memory-runtime.ts";
export * from "./ports.ts";
export * from "./runtime-conformance/index.ts";
export * from "./spawn-world.ts";
export * from "./temporary-folder.ts";
export * from "./tool-world.ts";
export * from "./tools.ts";
