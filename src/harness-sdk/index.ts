/**
 * `holdfast/harness`: what an agent's code is written with. This is the build for sandboxes; under Node the same program gets the one in
 * `node/`, which serves standard streams and sockets.
 */

export { serveHarness, type HoldfastDoor } from "./door.ts";
export * from "./exports.ts";
