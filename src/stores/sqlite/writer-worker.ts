/** The writer's thread: it owns the writing connection and runs one batch after the other. */

import { parentPort, workerData } from "node:worker_threads";
import { invariant } from "../../base/index.ts";
import { BatchWriter } from "./batch-writer.ts";
import { faultOf } from "./faults.ts";
import { unpackList } from "./packed-list.ts";
import type { WriterRequest, WriterResponse, WriterStart } from "./writer-protocol.ts";

const port = parentPort;
invariant(port !== null, "the writer runs in a thread of its own");

function answer(work: () => void): void {
  let response: WriterResponse = { kind: "done" };
  try {
    work();
  } catch (error) {
    response = { kind: "failed", fault: faultOf(error) };
  }
  port?.postMessage(response);
}

let writer: BatchWriter | undefined;
answer(() => {
  writer = new BatchWriter(workerData as WriterStart);
});
// A thread without a file has nothing to wait for.
if (writer === undefined) port.close();

port.on("message", (request: WriterRequest) => {
  if (request.kind === "stage") return writer?.stage(unpackList(request.list));
  answer(() => {
    invariant(writer !== undefined, "a writer that could not open the file is given no work");
    if (request.kind === "write") writer.write(unpackList(request.list));
    else writer.close();
  });
  if (request.kind === "close") port.close();
});
