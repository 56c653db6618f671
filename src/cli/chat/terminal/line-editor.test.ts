import { describe, expect, it } from "vitest";
import { KeyReader, type Key } from "./keys.ts";
import { draftView, edited, newDraft, withText, type Draft } from "./line-editor.ts";

const text = (characters: string): Key[] => Array.from(characters, (character) => ({ kind: "text", text: character }));

/** The draft after these keys, and what was finished. */
function typed(keys: readonly Key[], from: Draft = newDraft()): { readonly draft: Draft; readonly submitted: readonly string[] } {
  const submitted: string[] = [];
  let draft = from;
  for (const key of keys) {
    const next = edited(draft, key);
    draft = next.draft;
    if (next.submitted !== undefined) submitted.push(next.submitted);
  }
  return { draft, submitted };
}

const key = (kind: Exclude<Key["kind"], "text" | "paste">): Key => ({ kind });

describe("the line that is written", () => {
  it("is finished by Enter, and remembered", () => {
    const { draft, submitted } = typed([...text("hello"), key("enter"), key("up")]);
    expect(submitted).toEqual(["hello"]);
    expect(draft.text).toBe("hello");
  });

  it("has several lines: a backslash before Enter, Alt-Enter, a paste", () => {
    expect(typed([...text("a\\"), key("enter"), ...text("b"), key("newline"), ...text("c"), key("enter")]).submitted).toEqual(["a\nb\nc"]);
    expect(typed([{ kind: "paste", text: "x\ny" }, key("enter")]).submitted).toEqual(["x\ny"]);
  });

  it("is edited where the cursor stands", () => {
    const keys = [...text("one two"), key("word-left"), ...text("and "), key("home"), key("delete"), key("end"), key("backspace")];
    expect(typed(keys).draft.text).toBe("ne and tw");
    expect(typed([...text("one two"), key("cut-word")]).draft.text).toBe("one ");
    expect(typed([...text("one two"), key("left"), key("cut-to-start")]).draft.text).toBe("o");
  });

  it("takes a character as a person sees it", () => {
    expect(typed([{ kind: "paste", text: "e\u0301\u{1f600}" }, key("backspace")]).draft.text).toBe("e\u0301");
  });

  it("goes up and down in its lines before it goes through what was written", () => {
    const draft = withText(newDraft(["before"]), "one\ntwo");
    const up = edited(draft, key("up")).draft;
    expect([up.text, up.at]).toEqual(["one\ntwo", 3]);
    const before = edited(up, key("up")).draft;
    expect(before.text).toBe("before");
    expect(edited(before, key("down")).draft.text).toBe("one\ntwo");
  });

  it("sends nothing that is blank", () => {
    expect(typed([...text("  "), key("enter")])).toMatchObject({ submitted: [], draft: { text: "" } });
  });

  it("is drawn within the columns, the cursor where it stands", () => {
    expect(draftView({ text: "abcdef", at: 6 }, 7, "> ")).toEqual({ rows: ["> abcd", "  ef"], row: 1, column: 4 });
    expect(draftView({ text: "a\nb", at: 1 }, 20, "> ")).toEqual({ rows: ["> a", "  b"], row: 0, column: 3 });
    expect(draftView({ text: "\u001b[2J", at: 0 }, 20, "> ").rows[0]).toBe("> \ufffd[2J");
  });
});

describe("keys", () => {
  it("are what a terminal sends by other names", () => {
    const keys = new KeyReader();
    expect(keys.read("\r", { name: "return", sequence: "\r" })).toEqual({ kind: "enter" });
    expect(keys.read("\u001b\r", { name: "return", meta: true })).toEqual({ kind: "newline" });
    expect(keys.read("\u0003", { name: "c", ctrl: true })).toEqual({ kind: "interrupt" });
    expect(keys.read("é", { name: "é" })).toEqual({ kind: "text", text: "é" });
    expect(keys.read("\u001b[1;5P", { name: "f1", ctrl: true })).toBeUndefined();
  });

  it("of a paste are one text, line breaks included", () => {
    const keys = new KeyReader();
    expect(keys.read(undefined, { name: "paste-start" })).toBeUndefined();
    for (const piece of ["a", "\r", "b"]) expect(keys.read(piece, { name: piece === "\r" ? "return" : piece })).toBeUndefined();
    expect(keys.read(undefined, { name: "paste-end" })).toEqual({ kind: "paste", text: "a\nb" });
  });
});
