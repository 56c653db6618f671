/** Lines on Node: over byte streams and over gRPC. */

export { FrameReader, framed } from "./framing.ts";
export { hostLineOver, serveLineOver, type ServedLine, type StreamPair } from "./stream-line.ts";
