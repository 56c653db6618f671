/** What the providers behind an address have in common. */

import { HoldfastError, invalidArgument } from "../base/errors.ts";
import type { Clock, Random } from "../base/ports.ts";
import type { ProviderLimits } from "./limits.ts";

/** Options of every provider that is reached over the network. */
export interface RemoteProviderOptions {
  /** Where the API is: http or https, without credentials in it. Default: the vendor's own address. */
  readonly baseUrl?: string | undefined;
  /** Time limits, attempts and sizes; see `ProviderLimits` for the defaults. */
  readonly limits?: Partial<ProviderLimits> | undefined;
  readonly clock: Clock;
  readonly random: Random;
}

/** `baseUrl` when it can be called. Throws INVALID_ARGUMENT without repeating it: it may hold a credential. */
export function checkBaseUrl(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw invalidArgument("baseUrl", "must be an address that begins with http:// or https://");
  }
  if (url.username !== "" || url.password !== "") throw invalidArgument("baseUrl", "must have no user name and no password in it");
  return baseUrl;
}

/**
 * `apiKey` when it fits into a header. Throws INVALID_ARGUMENT without repeating it: a line break at its end, as a file or an
 * environment often has it, would otherwise come back inside an error of fetch together with the key.
 */
export function checkApiKey(apiKey: string): string {
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw invalidArgument("apiKey", "must be visible ASCII characters, without spaces and line breaks");
  }
  return apiKey;
}

/** Loads a vendor's client on first use and keeps it. */
export function lazily<Module>(load: () => Promise<Module>): () => Promise<Module> {
  let loading: Promise<Module> | undefined;
  return () => {
    loading ??= load().catch(() => {
      loading = undefined;
      throw new HoldfastError("failed_precondition", "model: the provider's client library is not installed on this host");
    });
    return loading;
  };
}
