/**
 * The process behind `server-process.ts`: a server as `holdfast serve` runs it, on a port of the system's choice. It ends with
 * its parent: however that goes, the channel between them closes.
 */

import { SILENT_LOG } from "../src/base/index.ts";
import { startServer } from "../src/server/index.ts";

const folder = process.argv[2];
if (folder === undefined || process.send === undefined) throw new Error("this is started by the bench");
const server = await startServer({ listen: { host: "127.0.0.1", port: 0 }, store: { kind: "sqlite", folder } }, { log: SILENT_LOG });
process.once("disconnect", () => void server.shutdown({ graceMs: 0 }));
process.send({ url: server.url });
