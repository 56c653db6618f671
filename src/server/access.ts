/** Who may reach a server: the rule for open addresses, and the bearer token. */

import { timingSafeEqual } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { HoldfastError, invalidArgument, type Digest } from "../base/index.ts";
import type { Authenticate } from "../gateway/contract.ts";
import { IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import type { ServerConfig } from "./config.ts";

/**
 * Throws INVALID_ARGUMENT for a server that would be open to a network without asking for a token, on either port, and for one whose
 * operator has the token of sessions.
 */
export function refuseOpenDoor(config: Pick<ServerConfig, "listen" | "token" | "registry">): void {
  const { listen, token } = config;
  const { listen: operatorsPort, token: operatorsToken } = config.registry;
  if (token === undefined && !isLoopback(listen.host)) {
    throw invalidArgument(
      "listen",
      "anything but a loopback address needs a token: set HOLDFAST_TOKEN or HOLDFAST_TOKEN_FILE, or listen on 127.0.0.1",
    );
  }
  if (operatorsToken === undefined && typeof operatorsPort === "object" && !isLoopback(operatorsPort.host)) {
    throw invalidArgument(
      "registry.listen",
      "anything but a loopback address needs the operator's token: set HOLDFAST_OPERATOR_TOKEN or its _FILE, or listen on 127.0.0.1",
    );
  }
  if (token !== undefined && token === operatorsToken) {
    throw invalidArgument("HOLDFAST_OPERATOR_TOKEN", "must not be the token of sessions: whoever has that may not register harnesses");
  }
}

/** Whether a host means this machine and nobody else. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase();
  return name === "localhost" || name === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(name);
}

/** Everybody is let in as nobody. */
const ANYBODY: Authenticate = () => ({ identity: undefined });

/**
 * Asks for the bearer token; without one, lets everybody in. Callers with the token are one party, recorded as the identity
 * `token` (or another name that is given) of the issuer `holdfast`. How long the comparison takes says nothing about the token.
 */
export function authenticateBy(token: string | undefined, digest: Digest, name: "token" | "operator" = "token"): Authenticate {
  if (token === undefined) return ANYBODY;
  const hashOf = (text: string): Buffer => Buffer.from(digest.sha256Hex(text), "hex");
  const expected = hashOf(token);
  const caller = { identity: create(IdentityRefSchema, { principal: name, issuer: "holdfast", subject: name }) };
  return (authorization) => {
    const given = /^Bearer +(?<token>\S+) *$/i.exec(authorization ?? "")?.groups?.["token"];
    if (authorization === undefined || authorization === "")
      throw refused("no token was given; send: Bearer, a space and the server's token");
    if (given === undefined) throw refused("must be: Bearer, a space and the server's token");
    if (!timingSafeEqual(hashOf(given), expected)) throw refused("is not the server's token");
    return caller;
  };
}

function refused(what: string): HoldfastError {
  return new HoldfastError("unauthenticated", `authorization: ${what}`, { field: "authorization" });
}
