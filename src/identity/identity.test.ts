import { createPublicKey, verify } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { executionIdOf, sessionUidOf, type LogFields } from "../base/index.ts";
import { IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { newKeyPair, signerOf } from "../node/index.ts";
import type { Start, TokenRequest } from "../spi/index.ts";
import { seededPorts } from "../testing/index.ts";
import { CREDENTIALS_MAX, createCredentials } from "./credentials.ts";
import { AUDIENCE_CHARS_MAX, AUDIENCE_MAX, createTokenIssuer } from "./issuer.ts";

function setup(lifetimeMs?: number) {
  const ports = seededPorts();
  const told: { level: string; message: string; fields: LogFields | undefined }[] = [];
  const log = { log: (level: string, message: string, fields?: LogFields) => void told.push({ level, message, fields }) };
  const issuer = createTokenIssuer({
    signer: signerOf(newKeyPair().privatePem, "key"),
    issuer: "https://holdfast.example",
    lifetimeMs,
    ...ports,
    log,
  });
  return { issuer, told, ports };
}

const request = (changes: Partial<TokenRequest> = {}): TokenRequest => ({
  sessionUid: sessionUidOf("s"),
  executionId: executionIdOf("e"),
  harness: "coder",
  principal: create(IdentityRefSchema, { principal: "agent-7", issuer: "https://id.example", subject: "sub-1" }),
  audience: ["https://api.example"],
  ...changes,
});

const partsOf = (token: string) => {
  const [header = "", claims = "", signature = ""] = token.split(".");
  const json = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;
  return { header: json(header), claims: json(claims), signed: `${header}.${claims}`, signature: Buffer.from(signature, "base64url") };
};

describe("a minted token", () => {
  it("is a transaction token for its audience, and verifies with the published key", async () => {
    const { issuer, ports } = setup();
    const { token, expiresUnix } = await issuer.mint(request());
    const { header, claims, signed, signature } = partsOf(token);
    const [key] = issuer.keys.keys;
    expect(header).toEqual({ typ: "txntoken+jwt", alg: "EdDSA", kid: key?.kid });
    const nowUnix = ports.clock.nowMs() / 1_000;
    expect(claims).toMatchObject({
      iss: "https://holdfast.example",
      sub: "sub-1",
      aud: "https://api.example",
      iat: nowUnix,
      exp: nowUnix + 300,
      req_wl: "coder",
      tctx: { session: "s", execution: "e", principal: "agent-7", principal_issuer: "https://id.example" },
    });
    expect(expiresUnix).toBe(nowUnix + 300);
    const publicKey = createPublicKey({ key: { ...key }, format: "jwk" });
    expect(verify(null, Buffer.from(signed), publicKey, signature)).toBe(true);
    expect(verify(null, Buffer.from(`${signed}x`), publicKey, signature)).toBe(false);
  });

  it("is another one every time, as long-lived as configured", async () => {
    const { issuer } = setup(1_000);
    const claims = [await issuer.mint(request()), await issuer.mint(request({ audience: ["a", "b"] }))].map(
      ({ token }) => partsOf(token).claims,
    );
    expect(claims[0]?.["txn"]).not.toBe(claims[1]?.["txn"]);
    expect(claims[1]?.["aud"]).toEqual(["a", "b"]);
    expect(Number(claims[0]?.["exp"]) - Number(claims[0]?.["iat"])).toBe(1);
  });

  it.each<[string, Partial<TokenRequest>, string]>([
    ["no audience", { audience: [] }, "invalid_argument"],
    ["an empty name", { audience: [""] }, "invalid_argument"],
    ["a name with a line break", { audience: ["a\nb"] }, "invalid_argument"],
    ["a lone surrogate", { audience: ["\ud800"] }, "invalid_argument"],
    ["a name that is too long", { audience: ["x".repeat(AUDIENCE_CHARS_MAX + 1)] }, "invalid_argument"],
    ["too many names", { audience: Array.from({ length: AUDIENCE_MAX + 1 }, (_, index) => `a${index}`) }, "resource_exhausted"],
    ["no principal", { principal: undefined }, "failed_precondition"],
    ["an empty principal", { principal: create(IdentityRefSchema) }, "failed_precondition"],
  ])("is refused for %s", async (_what, changes, code) => {
    const { issuer, told } = setup();
    await expect(issuer.mint(request(changes))).rejects.toMatchObject({ code });
    expect(told).toMatchObject([
      { level: "warn", message: "audit: a token was refused", fields: { session: "s", code, audience: undefined } },
    ]);
  });

  it("may be for as many names, and as long ones, as the limits say", async () => {
    const { issuer } = setup();
    const audience = Array.from({ length: AUDIENCE_MAX }, (_, index) => `${index}`.padEnd(AUDIENCE_CHARS_MAX, "x"));
    expect(partsOf((await issuer.mint(request({ audience }))).token).claims["aud"]).toEqual(audience);
  });

  it("is told to the audit log, but for the token itself", async () => {
    const { issuer, told } = setup();
    const { token } = await issuer.mint(request());
    expect(told).toEqual([
      {
        level: "info",
        message: "audit: a token was minted",
        fields: { session: "s", execution: "e", harness: "coder", audience: "https://api.example", code: undefined },
      },
    ]);
    expect(JSON.stringify(told)).not.toContain(token.slice(-20));
  });

  it.each([999, 3_600_001, 1.5, Number.NaN])("cannot live for %d ms", (lifetimeMs) => {
    expect(() => setup(lifetimeMs)).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });
});

describe("a credential", () => {
  const start = (id: string) => ({ executionId: executionIdOf(id) }) as Start;

  it("is good for its own execution, until it is disposed of", () => {
    const credentials = createCredentials(seededPorts());
    const one = credentials.issue(start("1"));
    const two = credentials.issue(start("2"));
    expect(one.secret).not.toBe(two.secret);
    expect(credentials.holderOf(one.secret).executionId).toBe("1");
    expect(credentials.holderOf(two.secret).executionId).toBe("2");
    one[Symbol.dispose]();
    expect(() => credentials.holderOf(one.secret)).toThrow(expect.objectContaining({ code: "unauthenticated" }));
    expect(credentials.holderOf(two.secret).executionId).toBe("2");
  });

  it.each(["", "guess", "0".repeat(64)])("is not %j", (secret) => {
    expect(() => createCredentials(seededPorts()).holderOf(secret)).toThrow(expect.objectContaining({ code: "unauthenticated" }));
  });

  it("is out for a bounded number of executions", () => {
    const credentials = createCredentials(seededPorts());
    const issued = Array.from({ length: CREDENTIALS_MAX }, (_, index) => credentials.issue(start(`${index}`)));
    expect(() => credentials.issue(start("more"))).toThrow(expect.objectContaining({ code: "resource_exhausted" }));
    issued[0]?.[Symbol.dispose]();
    expect(() => credentials.issue(start("more"))).not.toThrow();
  });
});
