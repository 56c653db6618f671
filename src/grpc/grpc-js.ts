/** The two halves of a method as grpc-js takes them. The package exports only both together, which no side has. */

import type { MethodDefinition } from "@grpc/grpc-js";

/** What a client needs of a method. */
export type ClientMethodDefinition<Request, Response> = Pick<
  MethodDefinition<Request, Response>,
  "path" | "requestStream" | "responseStream" | "requestSerialize" | "responseDeserialize"
>;

/** What a server needs of a method. */
export type ServerMethodDefinition<Request, Response> = Pick<
  MethodDefinition<Request, Response>,
  "path" | "requestStream" | "responseStream" | "requestDeserialize" | "responseSerialize"
>;
