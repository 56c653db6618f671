/** Names that others chose, in messages for a caller. Pure. */

const SAFE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$/;

/** `name` where it is a plain identifier of at most 64 characters, which a message may hold; else undefined. */
export function safeName(name: string): string | undefined {
  return SAFE_NAME.test(name) ? name : undefined;
}
