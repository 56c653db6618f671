/** `holdfast head` */

import type { Command } from "commander";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { SignedHeadSchema } from "../../gen/holdfast/v1/export_pb.ts";
import { withReader } from "../connect.ts";
import { clientOptions, define, run, type ClientFlags } from "../define.ts";
import { messageJson } from "../json.ts";
import { plainLine } from "../plain.ts";

export function headCommand(): Command {
  const command = define(
    "head",
    "have the server sign a session's head",
    "The seq and hash of a session's last record with the time, signed by the server's key (HOLDFAST_SIGNING_KEY_FILE). Kept in another " +
      "place, it shows later whether the session is still the same up to there: `holdfast verify FILE --head`.",
    [["keep it", "holdfast head UID --json >> heads.jsonl"]],
  ).argument("<uid>", "the session");
  return clientOptions(command, "the SignedHead, on one line").action((uid: string, flags: ClientFlags) =>
    run(flags, (context) =>
      withReader(context, flags, async ({ client }) => {
        const { screen, signal } = context;
        const head = await client.journal.signHead(uid, { signal });
        if (screen.json) screen.value(messageJson(SignedHeadSchema, head));
        else {
          const time = head.time === undefined ? "" : new Date(timestampMs(head.time)).toISOString();
          screen.line(`head ${head.seq}  sha256 ${plainLine(head.contentHash)}  signed by ${plainLine(head.keyId)} at ${time}`);
        }
        return 0;
      }),
    ),
  );
}
