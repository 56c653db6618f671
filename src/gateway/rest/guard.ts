/**
 * What keeps web pages away from a server that has no token.
 *
 * Without a token whoever can reach the port may use it, and every browser on the machine can reach a loopback port. Two things
 * stop a page of another site from doing so. The `Host` header must be a loopback name, so a name that an attacker's DNS
 * suddenly points at 127.0.0.1 is refused. And a request that a browser marks as another origin's is refused; no CORS header is
 * ever sent. With a token none of this is needed: a page cannot know it, and a browser does not send it by itself.
 */

import { HttpRefusal } from "./problem.ts";

/** Throws PERMISSION_DENIED for a request that a page of another origin may have caused. */
export function refuseForeignPages(method: string, headers: Headers): void {
  const host = headers.get("host") ?? "";
  if (!isLoopbackHost(host)) {
    throw new HttpRefusal(
      403,
      "permission_denied",
      "Host: must be a loopback name (localhost, 127.0.0.1, [::1]) while the server has no token configured",
      { field: "Host" },
    );
  }
  const origin = headers.get("origin");
  if (origin !== null ? !isOriginOf(origin, host) : isForeignFetch(method, headers)) {
    throw new HttpRefusal(
      403,
      "permission_denied",
      "Origin: requests from pages of another origin are refused while the server has no token configured",
      { field: "Origin" },
    );
  }
}

/** 127.0.0.0/8 as it is written: four numbers up to 255, without zeros before them, which some would read as octal. */
const LOOPBACK_ADDRESS = /^127(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/;

/** Whether a Host header names this machine by a loopback name, with or without a port. */
export function isLoopbackHost(host: string): boolean {
  const name = host.replace(/:\d{1,5}$/, "").toLowerCase();
  if (name === "localhost" || name.endsWith(".localhost") || name === "[::1]") return true;
  return LOOPBACK_ADDRESS.test(name);
}

function isOriginOf(origin: string, host: string): boolean {
  const authority = host.toLowerCase();
  return origin === `http://${authority}` || origin === `https://${authority}`;
}

/** A browser says so by `Sec-Fetch-Site`. Following a link is no danger: the page that has the link cannot read the answer. */
function isForeignFetch(method: string, headers: Headers): boolean {
  const site = headers.get("sec-fetch-site");
  if (site === null || site === "same-origin" || site === "none") return false;
  return !(method === "GET" && headers.get("sec-fetch-mode") === "navigate");
}
