/** How a remote runtime is set up. */

import { credentials, type ChannelCredentials } from "@grpc/grpc-js";
import { invalidArgument } from "../../base/errors.ts";
import type { Clock, Log, Random } from "../../base/ports.ts";
import type { LineHarnessOptions, WireLimits } from "../../harness-wire/index.ts";

/** How the harness is known, and how the host is known to it; PEM. */
export interface RemoteTls {
  /** The authorities to trust. Default: those of Node. */
  readonly ca?: string | undefined;
  /** The host's own certificate and key; both or neither. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name in the harness's certificate, where it is not the address's host. */
  readonly serverName?: string | undefined;
}

/** What a remote runtime is made of. */
export interface RemoteRuntimeOptions {
  /** `unix:///path` or `host:port`. */
  readonly address: string;
  /** Default: cleartext. */
  readonly tls?: RemoteTls | undefined;
  /** Metadata that every call carries; routing, not authentication. */
  readonly callMetadata?: Readonly<Record<string, string>> | undefined;
  /** How long the harness may take to answer when it is dialled. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  readonly limits?: Partial<WireLimits> | undefined;
  /** Opens the host's services to a harness that speaks nothing but the contract, for one execution. */
  readonly grant?: LineHarnessOptions["grant"];
  readonly ports: { readonly clock: Clock; readonly random: Random };
  readonly log?: Log | undefined;
}

/** What TLS makes of a channel; undefined for cleartext. Throws INVALID_ARGUMENT for what is no PEM. */
export function credentialsOf(tls: RemoteTls | undefined): ChannelCredentials | undefined {
  if (tls === undefined) return undefined;
  if ((tls.cert === undefined) !== (tls.key === undefined))
    throw invalidArgument("tls", "must have both a certificate and its key, or neither");
  try {
    return credentials.createSsl(bytesOf(tls.ca), bytesOf(tls.key), bytesOf(tls.cert));
  } catch (error) {
    throw invalidArgument("tls", "must hold certificates and a key in PEM", { cause: error });
  }
}

function bytesOf(text: string | undefined): Buffer | null {
  return text === undefined ? null : Buffer.from(text);
}
