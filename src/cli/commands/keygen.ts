/** `holdfast keygen` */

import { Option, type Command } from "commander";
import { writeFileSync } from "node:fs";
import { fingerprintOf, KEY_ID_DIGITS } from "../../archive/index.ts";
import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import { newKeyPair, nodeDigest, signerOf } from "../../node/index.ts";
import { define, run } from "../define.ts";

export function keygenCommand(): Command {
  return define(
    "keygen",
    "make a key that signs heads or tokens",
    "Makes an Ed25519 key pair: the private key in the file, which only its owner can read, and the public one beside it with .pub at its " +
      "end. A file that is there is never replaced. The server signs with the key that HOLDFAST_SIGNING_KEY_FILE names; those who verify get " +
      "the public one. A key of its own, which HOLDFAST_MINT_KEY_FILE names, signs the tokens that harnesses mint.",
    [
      ["make one, and serve with it", "holdfast keygen signing-key.pem && HOLDFAST_SIGNING_KEY_FILE=signing-key.pem holdfast serve"],
      [
        "make another for minting tokens, and serve with it",
        "holdfast keygen mint.pem && HOLDFAST_MINT_KEY_FILE=mint.pem HOLDFAST_MINT_ISSUER=https://holdfast.example holdfast serve",
      ],
      ["who verifies trusts it", "holdfast verify session.jsonl --trusted-keys signing-key.pem.pub"],
    ],
  )
    .argument("<file>", "where the private key goes")
    .addOption(new Option("--json", "the key's id, its fingerprint and the files, on one line"))
    .action((file: string, flags: { readonly json?: boolean }) =>
      run(flags, async ({ screen }) => {
        const { privatePem, publicPem } = newKeyPair();
        const fingerprint = fingerprintOf(signerOf(privatePem, "key").publicKey, nodeDigest);
        writeNew(file, privatePem, 0o600);
        writeNew(`${file}.pub`, publicPem, 0o644);
        const keyId = fingerprint.slice(0, KEY_ID_DIGITS);
        if (screen.json) screen.value({ key_id: keyId, fingerprint, private_key_file: file, public_key_file: `${file}.pub` });
        else screen.line(`key ${keyId}  private in ${file}  public in ${file}.pub`);
        return 0;
      }),
    );
}

function writeNew(path: string, text: string, mode: number): void {
  try {
    writeFileSync(path, text, { mode, flag: "wx", flush: true });
  } catch (error) {
    const isThere = error instanceof Error && "code" in error && error.code === "EEXIST";
    if (isThere)
      throw new HoldfastError("already_exists", "FILE: is there already, or one with .pub at its end is, and neither is replaced");
    throw invalidArgument("FILE", "must name a file that can be written", { cause: error });
  }
}
