/** Addresses of harnesses: `unix:///absolute/path` and `host:port`. */

import { invalidArgument } from "../../base/errors.ts";

/** Where a harness listens. */
export type HarnessAddress =
  | { readonly kind: "unix"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

const TCP = /^(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})$/;

/** Reads an address. Throws INVALID_ARGUMENT naming `field` for anything else. */
export function harnessAddressOf(text: string, field = "address"): HarnessAddress {
  if (text.startsWith("unix:///") && !text.includes("\0")) return { kind: "unix", path: text.slice("unix://".length) };
  const [, host = "", port = ""] = TCP.exec(text) ?? [];
  if (host !== "" && Number(port) <= 65_535) return { kind: "tcp", host, port: Number(port) };
  throw invalidArgument(field, "must be unix:///an/absolute/path or host:port");
}

/** The address as grpc-js dials and binds it. */
export function grpcTargetOf(address: HarnessAddress): string {
  return address.kind === "unix" ? `unix:${address.path}` : `${address.host}:${address.port}`;
}

/** The address as people write it. */
export function textOfAddress(address: HarnessAddress): string {
  return address.kind === "unix" ? `unix://${address.path}` : `${address.host}:${address.port}`;
}

/** Whether nobody but this machine reaches it. */
export function isLoopback(address: HarnessAddress): boolean {
  if (address.kind === "unix") return true;
  return address.host === "localhost" || address.host === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(address.host);
}
