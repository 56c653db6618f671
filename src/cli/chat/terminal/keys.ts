/** The keys that the chat knows, from what a terminal sends. Pure. */

/** A key, or what was pasted. */
export type Key =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "paste"; readonly text: string }
  | { readonly kind: KeyName };

export type KeyName =
  | "enter"
  /** A line break in the text: Alt-Enter, Ctrl-J. */
  | "newline"
  | "backspace"
  | "delete"
  | "left"
  | "right"
  | "up"
  | "down"
  | "home"
  | "end"
  | "word-left"
  | "word-right"
  | "cut-word"
  | "cut-to-start"
  | "cut-to-end"
  | "tab"
  | "escape"
  /** Ctrl-C */
  | "interrupt"
  /** Ctrl-D */
  | "end-of-input"
  /** Ctrl-L */
  | "redraw"
  /** Ctrl-Z */
  | "suspend";

/** A keypress as `node:readline` reports it. */
export interface Keypress {
  readonly sequence?: string | undefined;
  readonly name?: string | undefined;
  readonly ctrl?: boolean | undefined;
  readonly meta?: boolean | undefined;
}

const NAMED: Readonly<Record<string, KeyName>> = {
  return: "enter",
  enter: "newline",
  backspace: "backspace",
  delete: "delete",
  left: "left",
  right: "right",
  up: "up",
  down: "down",
  home: "home",
  end: "end",
  tab: "tab",
  escape: "escape",
};

const WITH_CTRL: Readonly<Record<string, KeyName>> = {
  c: "interrupt",
  d: "end-of-input",
  a: "home",
  e: "end",
  b: "left",
  f: "right",
  p: "up",
  n: "down",
  h: "backspace",
  w: "cut-word",
  u: "cut-to-start",
  k: "cut-to-end",
  l: "redraw",
  z: "suspend",
  j: "newline",
  left: "word-left",
  right: "word-right",
};

const WITH_META: Readonly<Record<string, KeyName>> = {
  return: "newline",
  enter: "newline",
  b: "word-left",
  f: "word-right",
  left: "word-left",
  right: "word-right",
  backspace: "cut-word",
};

/** Turns keypresses into keys. What comes between the marks of a paste is one. */
export class KeyReader {
  #pasted: string | undefined;

  /** The key of a keypress; undefined for one that means nothing here. */
  read(text: string | undefined, press: Keypress): Key | undefined {
    if (press.name === "paste-start") {
      this.#pasted = "";
      return undefined;
    }
    if (press.name === "paste-end") {
      const pasted = this.#pasted ?? "";
      this.#pasted = undefined;
      return pasted === "" ? undefined : { kind: "paste", text: pasted.replaceAll(/\r\n?/g, "\n") };
    }
    if (this.#pasted === undefined) return keyOf(text, press);
    this.#pasted += text ?? press.sequence ?? "";
    return undefined;
  }
}

function keyOf(text: string | undefined, { name = "", ctrl = false, meta = false }: Keypress): Key | undefined {
  const kind = ctrl ? WITH_CTRL[name] : meta ? WITH_META[name] : NAMED[name];
  if (kind !== undefined) return { kind };
  // oxlint-disable-next-line no-control-regex -- what has a control character is a sequence that means nothing here.
  if (ctrl || meta || text === undefined || text === "" || /[\u0000-\u001f\u007f]/.test(text)) return undefined;
  return { kind: "text", text };
}
