/**
 * What a host offers to the harnesses that it drives: tokens to act with, and a door of their own to those that speak nothing but the
 * contract.
 *
 * Invariants: a credential is good while its execution runs; a host whose door is encrypted hands out none, since a harness that
 * speaks the contract alone could not tell whose certificate it sees.
 */

import { HoldfastError, type Log, type Ports } from "../base/index.ts";
import type { Authenticate } from "../gateway/contract.ts";
import type { HostGrant } from "../harness-wire/index.ts";
import { createCredentials, createTokenIssuer, type Credentials, type PublishedIssuer } from "../identity/index.ts";
import type { Start } from "../spi/index.ts";
import type { ServerConfig } from "./config.ts";

/** Opens the host's services for one execution. */
export type Grant = (start: Start) => HostGrant & Disposable;

/** The services, and what of them the parts of a host need. */
export class HarnessServices {
  /** Signs tokens; undefined on a host without a key. */
  readonly tokens: PublishedIssuer | undefined;
  /** For runtimes whose harnesses may speak the contract alone; undefined where they are offered nothing. */
  readonly grant: Grant | undefined;
  readonly #credentials: Credentials;
  #address = "";

  constructor(config: Pick<ServerConfig, "tokens" | "tls">, ports: Ports, log: Log) {
    this.tokens = config.tokens === undefined ? undefined : createTokenIssuer({ ...config.tokens, ...ports, log });
    this.#credentials = createCredentials(ports);
    this.grant = config.tls === undefined ? (start) => this.#granted(start) : undefined;
  }

  /** Where the host's door is, once it is open. A door on every address is reached from this machine by the loopback one. */
  servedAt(host: string, port: number): void {
    const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
    this.#address = reachable.includes(":") ? `[${reachable}]:${port}` : `${reachable}:${port}`;
  }

  /** Who a harness is that calls the host. */
  readonly authenticate: Authenticate = (authorization) => {
    const secret = /^Bearer +(?<secret>\S+) *$/i.exec(authorization ?? "")?.groups?.["secret"];
    if (secret === undefined) {
      throw new HoldfastError("unauthenticated", "authorization: must be: Bearer, a space and the credential of the execution", {
        field: "authorization",
      });
    }
    const execution = this.#credentials.holderOf(secret);
    return { identity: execution.identity.principal, execution };
  };

  #granted(start: Start): HostGrant & Disposable {
    const issued = this.#credentials.issue(start);
    return { address: this.#address, credential: issued.secret, [Symbol.dispose]: () => issued[Symbol.dispose]() };
  }
}
