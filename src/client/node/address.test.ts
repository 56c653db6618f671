import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/errors.ts";
import { endpointOf } from "./address.ts";
import { createNodeTransport } from "./index.ts";

describe("a server's address", () => {
  it.each([
    ["127.0.0.1:8080", "dns:127.0.0.1:8080", false, true],
    ["localhost:8080", "dns:localhost:8080", false, true],
    ["[::1]:8080", "dns:[::1]:8080", false, true],
    ["host.example:80", "dns:host.example:80", false, false],
    ["http://host.example:8080", "dns:host.example:8080", false, false],
    ["http://host.example/", "dns:host.example:80", false, false],
    ["https://host.example", "dns:host.example:443", true, false],
    ["HTTPS://Host.Example:8443", "dns:host.example:8443", true, false],
    ["unix:///run/holdfast.sock", "unix:/run/holdfast.sock", false, true],
    ["unix:relative.sock", "unix:relative.sock", false, true],
  ])("%s is read", (address, target, secure, local) => {
    expect(endpointOf(address)).toEqual({ target, secure, local });
  });

  it.each([
    "",
    "host",
    "host:port",
    ":8080",
    "ftp://host:1",
    "http://user@host:1",
    "http://host:1/path",
    "http://host:1?x",
    "unix://",
    "host:99999",
  ])("%j is refused, and what would be right is said", (address) => {
    expect(() => endpointOf(address)).toThrow(/^address: must be http:\/\/host:port, https:\/\/host:port, host:port or unix:/);
  });

  it("takes TLS options only where there is TLS", () => {
    expect(() => createNodeTransport({ address: "127.0.0.1:1", tls: {} })).toThrow(HoldfastError);
  });
});
