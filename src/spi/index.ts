/**
 * The service provider interfaces of Holdfast: harnesses, models, tools, runtimes, authorisation and blobs.
 * `docs/spi.md` compares every name with the contract's SPI.
 */

export * from "./authorizer.ts";
export * from "./baseline.ts";
export * from "./blob.ts";
export * from "./catalog.ts";
export * from "./environment.ts";
export * from "./faults.ts";
export * from "./harness.ts";
export * from "./identity.ts";
export * from "./inbox.ts";
export * from "./join-tools.ts";
export * from "./model.ts";
export * from "./notes.ts";
export * from "./observation.ts";
export * from "./outcome.ts";
export * from "./registration.ts";
export * from "./runtime.ts";
export * from "./served-names.ts";
export * from "./tool.ts";
export * from "./wire.ts";
