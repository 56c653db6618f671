/** Export as a route: a file to download, written while it is read. */

import { create } from "@bufbuild/protobuf";
import type { ArchiveForm } from "../../archive/index.ts";
import { ExportRequestSchema } from "../../gen/holdfast/v1/export_pb.ts";
import { reported } from "../fault.ts";
import { Pace } from "../pace.ts";
import type { LiveDependencies } from "./live-routes.ts";
import type { RestCall, Route } from "./route.ts";

const LINES_TYPE = "application/x-ndjson";
const BINARY_TYPE = "application/octet-stream";

/** See `docs/export.md`. */
export function exportRoute(dependencies: LiveDependencies): Route {
  return {
    operationId: "export",
    method: "GET",
    path: "/v1/sessions/{uid}/export",
    summary: "Download a session as a file",
    description:
      "Everything that is needed to verify the session without a server and to import it on another one. A download that breaks off is no " +
      "whole file: its end is missing.",
    query: {
      family: { type: "boolean", description: "Everything that has an ancestor in common with the session, as far as it is not deleted." },
      format: { type: ["jsonl", "binary"], description: "JSON lines (the default), or the compact binary form." },
    },
    answers: [
      { kind: "file", type: LINES_TYPE, description: "The export as JSON lines." },
      { kind: "file", type: BINARY_TYPE, description: "The export in binary form, with format=binary." },
    ],
    async handle(call) {
      const form: ArchiveForm = call.query.text("format") === "binary" ? "binary" : "lines";
      const request = create(ExportRequestSchema, { session: call.uid, family: call.query.flag("family") });
      const pieces = dependencies.journal.export(request, call.context, form);
      const first = await pieces.next();
      return new Response(bodyOf(first, pieces, call, dependencies), {
        headers: {
          "content-type": form === "lines" ? LINES_TYPE : BINARY_TYPE,
          "content-disposition": `attachment; filename="${fileName(call.uid)}.${form === "lines" ? "jsonl" : "hfx"}"`,
        },
      });
    },
  };
}

type Pieces = AsyncGenerator<Uint8Array, void, undefined>;

/** What goes wrong after the beginning cuts the connection. */
function bodyOf(
  first: IteratorResult<Uint8Array, void>,
  pieces: Pieces,
  call: RestCall,
  { log }: LiveDependencies,
): ReadableStream<Uint8Array> {
  const pace = new Pace();
  let taken: IteratorResult<Uint8Array, void> | undefined = first;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = taken ?? (await pieces.next());
        taken = undefined;
        call.context.signal.throwIfAborted();
        if (next.done === true) return controller.close();
        controller.enqueue(next.value);
        await pace.made(next.value.length);
      } catch (error) {
        controller.error(reported(error, "Export", log));
      }
    },
    cancel() {
      call.onGone();
      // The abort lets a pending read settle; what it throws then is of no interest to anybody.
      pieces.return().catch(() => undefined);
    },
  });
}

/** A uid as a name of a file on any system. */
function fileName(uid: string): string {
  return uid.replaceAll(/[^A-Za-z0-9._-]/g, "_");
}
