/**
 * Acting for a session's principal: a harness in a process of its own mints a token over the harness wire, or through the host's own
 * service where it speaks nothing but the contract. Anybody verifies the token with the published keys; it stands in the audit log that
 * it was minted, and the token itself nowhere.
 */

import { createPublicKey, verify } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import type { LogFields } from "../src/base/index.ts";
import { createClient } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { IdentityRefSchema } from "../src/gen/agentsessions/v1/common_pb.ts";
import { newKeyPair, signerOf } from "../src/node/index.ts";
import type { HarnessConfig } from "../src/server/harness-config.ts";
import { startServer } from "../src/server/index.ts";
import { storyOf } from "../src/testing/index.ts";
import { listenAt } from "./support/served-program.ts";
import { newDataFolder } from "./support/server-process.ts";

const PROGRAM = fileURLToPath(new URL("support/minting.ts", import.meta.url));
const AUDIENCE = "https://api.example";

async function setup(way: "wire" | "contract", options: { readonly tokens: boolean }) {
  const folder = newDataFolder();
  const tokenFile = join(folder, "token");
  writeFileSync(tokenFile, "");
  const told: { message: string; fields: LogFields | undefined }[] = [];
  const server = await startServer(
    {
      listen: { host: "127.0.0.1", port: 0 },
      store: { kind: "sqlite", folder: join(folder, "data") },
      registry: { listen: "off", token: undefined },
      harnesses: { minting: await configOf(way, tokenFile) },
      tokens: options.tokens
        ? { signer: signerOf(newKeyPair().privatePem, "key"), issuer: "https://holdfast.example", lifetimeMs: 60_000 }
        : undefined,
    },
    { log: { log: (_level, message, fields) => void told.push({ message, fields }) } },
  );
  const client = createClient({ transport: createNodeTransport({ address: server.url }) });
  onTestFinished(async () => {
    await client[Symbol.asyncDispose]();
    await server.shutdown({ graceMs: 0 });
  });
  const identity = create(IdentityRefSchema, { principal: "agent-7", issuer: "https://id.example", subject: "sub-1" });
  const { metadata } = await client.sessions.create({ harness: "minting", identity });
  const session = client.session(metadata?.uid ?? "");
  const said: string[] = [];
  for await (const item of session.exec({ config: AUDIENCE })) {
    if (item.kind === "record" && item.record.event !== undefined) said.push(storyOf(item.record.event));
  }
  return { server, session, said, told, token: readFileSync(tokenFile, "utf8"), data: join(folder, "data") };
}

async function configOf(way: "wire" | "contract", tokenFile: string): Promise<HarnessConfig> {
  const env = { TOKEN_FILE: tokenFile };
  if (way === "wire") return { runtime: "process", command: [process.execPath, PROGRAM], cwd: "/", env, confine: false, line: "stdio" };
  const program = await listenAt([process.execPath, PROGRAM], "127.0.0.1:0", { ...env, CONTRACT_ONLY: "1" });
  onTestFinished(() => program.end());
  return { runtime: "remote", address: program.address };
}

const json = (part = ""): unknown => JSON.parse(Buffer.from(part, "base64url").toString());

describe.each(["wire", "contract"] as const)("a harness over the %s", (way) => {
  it("mints a token that anybody verifies with the published keys", async () => {
    const { server, session, said, token, told } = await setup(way, { tokens: true });
    expect(said).toEqual(["EXECUTION_START", "OUTPUT 0 events before", "OUTPUT minted for agent-7", "END COMPLETED"]);
    const [header, claims, signature = ""] = token.split(".");
    const { keys } = (await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] };
    const key = keys.find(({ kid }) => kid === (json(header) as { kid: string }).kid);
    const publicKey = createPublicKey({ key: { ...key }, format: "jwk" });
    expect(verify(null, Buffer.from(`${header}.${claims}`), publicKey, Buffer.from(signature, "base64url"))).toBe(true);
    const context = { session: session.uid, principal: "agent-7" };
    expect(json(claims)).toMatchObject({ iss: "https://holdfast.example", sub: "sub-1", aud: AUDIENCE, req_wl: "minting", tctx: context });
    expect(told).toContainEqual({
      message: "audit: a token was minted",
      fields: expect.objectContaining({ session: session.uid, harness: "minting", audience: AUDIENCE }),
    });
  });

  it("leaves the token nowhere", async () => {
    const { token, told, data, session } = await setup(way, { tokens: true });
    const signature = token.split(".")[2] ?? "";
    expect(signature).not.toBe("");
    expect(JSON.stringify(told)).not.toContain(signature);
    for (const file of readdirSync(data)) expect(readFileSync(join(data, file)).includes(signature)).toBe(false);
    const checks: string[] = [];
    for await (const check of session.checkReplay()) checks.push(check.kind);
    expect(checks).toEqual(["same"]);
    expect(told.filter(({ message }) => message.startsWith("audit"))).toHaveLength(1);
  });

  it("is told that no token can be had on a host without a key", async () => {
    const { server, said } = await setup(way, { tokens: false });
    expect(said).toContain("OUTPUT no token can be had");
    expect((await fetch(`${server.url}/.well-known/jwks.json`)).status).toBe(404);
  });
});
