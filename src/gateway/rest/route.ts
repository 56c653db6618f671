/** What a route is: one row of the table from which the app, its errors and its OpenAPI document are made. */

import type { DescMessage } from "@bufbuild/protobuf";
import type { CallContext } from "../../service/contract.ts";
import type { QueryParameters, QueryValues } from "./query.ts";

/** A request as a handler sees it. */
export interface RestCall {
  readonly context: CallContext;
  /** Fires `context.signal`: an event stream calls it when its client goes away. */
  readonly onGone: () => void;
  /** The session's uid in the path; "" in a route without one. */
  readonly uid: string;
  /** The id in the path of what is known by one; "" in a route without one. */
  readonly id: string;
  readonly query: QueryValues;
  readonly headers: Headers;
  /** The body's text; "" when there is none. */
  readonly text: string;
}

/** What a route answers when it goes well. */
export type Answer =
  | { readonly kind: "message"; readonly status: 200 | 201; readonly schema: DescMessage; readonly description: string }
  /** JSON that is no message of the protocol; `schema` is its JSON schema, `messages` are those it refers to. */
  | {
      readonly kind: "object";
      readonly schema: Readonly<Record<string, unknown>>;
      readonly messages?: readonly DescMessage[];
      readonly description: string;
    }
  /** A file to download, of this media type. */
  | { readonly kind: "file"; readonly type: string; readonly description: string }
  /** `events`: what the data of each is, and what `end` says. An `error` is a problem document everywhere. */
  | { readonly kind: "events"; readonly events: EventTable; readonly description: string };

/** The events of a stream. */
export interface EventTable {
  readonly data: Readonly<Record<string, DescMessage>>;
  /** The properties of `end`, each a JSON schema. */
  readonly end: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** One route. */
export interface Route {
  readonly operationId: string;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With `{uid}` where a session is named, and `{id}` where something else is. */
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly query: QueryParameters;
  /** The message that the body is read as; absent when the route takes no body. */
  readonly body?: DescMessage;
  /** Request headers that change the answer. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly answers: readonly Answer[];
  /** Served to anybody: without authentication. */
  readonly open?: boolean;
  /** Its stream ends by itself when the server closes, as a turn's does with its turn. */
  readonly endsItself?: boolean;
  handle(call: RestCall): Promise<Response>;
}
