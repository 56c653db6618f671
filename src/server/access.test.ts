import { describe, expect, it } from "vitest";
import { nodeDigest } from "../node/index.ts";
import { authenticateBy, isLoopback, refuseOpenDoor } from "./access.ts";

describe("the address of a server", () => {
  it("is this machine's own or not", () => {
    for (const host of ["127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "::1"]) expect(isLoopback(host)).toBe(true);
    for (const host of [
      "0.0.0.0",
      "::",
      "10.0.0.1",
      "example.com",
      "localhost.example.com",
      "127.0.0.1.example.com",
      "::ffff:127.0.0.1",
      "",
    ]) {
      expect(isLoopback(host)).toBe(false);
    }
  });

  const beside = { listen: "beside", token: undefined } as const;

  it("may be open to a network only with a token", () => {
    const listen = { host: "0.0.0.0", port: 8080 };
    expect(() => refuseOpenDoor({ listen, token: undefined, registry: beside })).toThrow(/^listen: .*needs a token/);
    expect(() => refuseOpenDoor({ listen, token: "sesame", registry: beside })).not.toThrow();
    expect(() => refuseOpenDoor({ listen: { host: "127.0.0.1", port: 8080 }, token: undefined, registry: beside })).not.toThrow();
  });

  it("is the same for the operator's port, whose token is not that of sessions", () => {
    const own = { listen: { host: "127.0.0.1", port: 8080 }, token: "sesame" };
    const registry = { listen: { host: "10.0.0.1", port: 8081 }, token: undefined };
    expect(() => refuseOpenDoor({ ...own, registry })).toThrow(/^registry\.listen: .*needs the operator's token/);
    expect(() => refuseOpenDoor({ ...own, registry: { ...registry, token: "other" } })).not.toThrow();
    expect(() => refuseOpenDoor({ ...own, registry: { ...registry, listen: { host: "::1", port: 8081 } } })).not.toThrow();
    expect(() => refuseOpenDoor({ ...own, registry: { ...registry, token: "sesame" } })).toThrow(/must not be the token of sessions/);
  });
});

describe("the bearer token", () => {
  it("is asked of nobody when there is none", () => {
    expect(authenticateBy(undefined, nodeDigest)(undefined)).toEqual({ identity: undefined });
  });

  it("lets its bearer in, who is then known by an identity", () => {
    const authenticate = authenticateBy("sesame", nodeDigest);
    for (const header of ["Bearer sesame", "bearer sesame", "Bearer  sesame "]) {
      expect(authenticate(header).identity).toMatchObject({ principal: "token", issuer: "holdfast" });
    }
  });

  it("says whether there was no token, none that can be read, or the wrong one", () => {
    const authenticate = authenticateBy("sesame", nodeDigest);
    expect(() => authenticate(undefined)).toThrow("authorization: no token was given");
    expect(() => authenticate("sesame")).toThrow("authorization: must be: Bearer, a space and the server's token");
    expect(() => authenticate("Bearer other")).toThrow("authorization: is not the server's token");
  });

  it("keeps everybody else out, without repeating what they said", () => {
    const authenticate = authenticateBy("sesame", nodeDigest);
    const wrong = [
      undefined,
      "",
      "sesame",
      "Bearer",
      "Bearer ",
      "Bearer sesam",
      "Bearer sesame2",
      "Basic sesame",
      "Bearer se same",
      "Bearersesame",
    ];
    for (const header of wrong) {
      expect(() => authenticate(header)).toThrow(expect.objectContaining({ code: "unauthenticated", field: "authorization" }) as Error);
      expect(() => authenticate(header)).not.toThrow(/sesam/);
    }
  });
});
