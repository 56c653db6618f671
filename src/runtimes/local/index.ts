/** The local runtime: harnesses in this process. */

export * from "./local.ts";
