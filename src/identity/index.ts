/** Identity: tokens with which a harness acts for its session's principal, and credentials of executions. */

export * from "./credentials.ts";
export * from "./issuer.ts";
