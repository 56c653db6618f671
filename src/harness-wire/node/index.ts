/** Lines on Node: over byte streams and over gRPC. */

export { harnessAddressOf, isLoopback, type HarnessAddress } from "./address.ts";
export { dialHarness, type DialledHarness, type DialOptions } from "./dial.ts";
export { FrameReader, framed } from "./framing.ts";
export { serveGrpc, type GrpcServed, type GrpcServeOptions } from "./grpc-serve.ts";
export { hostLineOver, serveLineOver, type ServedLine, type StreamPair } from "./stream-line.ts";
