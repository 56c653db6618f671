/** Server addresses as people write them, and what a channel needs of them. */

import { invalidArgument } from "../../base/errors.ts";

/** Where to connect, and how. */
export interface Endpoint {
  /** The target as grpc-js takes it. */
  readonly target: string;
  readonly secure: boolean;
  /** Whether the other end is on this machine: such a connection never goes through a proxy. */
  readonly local: boolean;
}

const FORMS = "must be http://host:port, https://host:port, host:port or unix:///path";

/**
 * Reads `http://host[:port]` (default port 80), `https://host[:port]` (443), `host:port` (cleartext) and `unix:///path`. Throws
 * INVALID_ARGUMENT for anything else.
 */
export function endpointOf(address: string): Endpoint {
  if (address.startsWith("unix:")) {
    const path = address.slice("unix:".length).replace(/^\/\//, "");
    if (path === "") throw invalidArgument("address", FORMS);
    return { target: `unix:${path}`, secure: false, local: true };
  }
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(address) ? address : `http://${address}`;
  const url = URL.parse(withScheme);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:") || url.hostname === "")
    throw invalidArgument("address", FORMS);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "") {
    throw invalidArgument("address", `${FORMS}, with nothing before the host or after the port`);
  }
  if (withScheme !== address && url.port === "" && !address.endsWith(":80")) throw invalidArgument("address", FORMS);
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? "443" : "80") : url.port;
  return { target: `dns:${url.hostname}:${port}`, secure, local: isLoopback(url.hostname) };
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname.endsWith(".localhost") || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
