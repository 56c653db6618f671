/** What both ends of a gRPC connection share: codecs, method definitions, statuses and records inside updates. */

export * from "./codec.ts";
export * from "./method.ts";
export * from "./status.ts";
export * from "./update.ts";
