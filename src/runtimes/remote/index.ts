/** The remote runtime: a harness that is served at an address. */

export type { RemoteRuntimeOptions, RemoteTls } from "./options.ts";
export { createRemoteRuntime } from "./remote-runtime.ts";
