/** Heads that somebody kept: a file of JSON lines, each a SignedHead, as `holdfast head --json` prints it. */

import { readFileSync } from "node:fs";
import { fromJsonString } from "@bufbuild/protobuf";
import { checkSignature, type TrustedKeys } from "../archive/index.ts";
import { invalidArgument } from "../base/errors.ts";
import { SignedHeadSchema, type SignedHead } from "../gen/holdfast/v1/export_pb.ts";
import { nodeDigest, nodeSignatures } from "../node/index.ts";

/** The heads in a file, by session; of several for one session the last. Throws INVALID_ARGUMENT for one that cannot be trusted. */
export function readHeads(path: string, trusted: TrustedKeys | undefined): ReadonlyMap<string, SignedHead> {
  const heads = new Map<string, SignedHead>();
  for (const line of readText(path, "--head").split("\n")) {
    if (line.trim() === "") continue;
    const head = headIn(line);
    const signature = checkSignature(head, nodeDigest, nodeSignatures);
    if (signature.kind === "wrong") throw invalidArgument("--head", "holds a head whose signature is wrong");
    if (trusted !== undefined && (signature.kind === "none" || !trusted.trusts(signature.fingerprint))) {
      throw invalidArgument("--head", "holds a head that no trusted key has signed");
    }
    heads.set(head.session, head);
  }
  if (heads.size === 0) throw invalidArgument("--head", "must hold at least one head");
  return heads;
}

/** The text of a file that an option names. */
export function readText(path: string, option: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw invalidArgument(option, "must name a file that can be read", { cause: error });
  }
}

function headIn(line: string): SignedHead {
  try {
    return fromJsonString(SignedHeadSchema, line);
  } catch (error) {
    throw invalidArgument("--head", "must hold a SignedHead as JSON on each line", { cause: error });
  }
}
