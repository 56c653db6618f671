/** The client's transport on Node. */

export { createNodeTransport, type NodeTransportOptions, type TlsOptions } from "./transport.ts";
