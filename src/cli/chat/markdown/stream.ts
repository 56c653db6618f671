/**
 * Markdown that arrives in pieces. What is complete comes out as blocks, once; the rest is shown as it is so far.
 *
 * Invariants:
 * - The blocks that came out and the rest are the text that came in, in order, less what was retracted.
 * - A block of more than 16 KiB comes out in pieces: what is parsed again with each piece that comes stays small.
 */

import type { Tokens } from "marked";
import { blocksOf } from "./blocks.ts";

/** A complete block, or a piece of one. */
export interface MarkdownBlock {
  /** `code` is one line of a fenced block, without its fence. */
  readonly kind: "markdown" | "code";
  readonly text: string;
  /** Whether it goes on with the block before it, without a blank line between them. */
  readonly isJoined: boolean;
}

const BLOCK_CHARS_MAX = 16_384;

/** Where a block begins in the whole text, and what it is in. */
interface BlockStart {
  readonly at: number;
  readonly fence: string | undefined;
  readonly isJoined: boolean;
}

const START: BlockStart = { at: 0, fence: undefined, isJoined: false };

export class MarkdownStream {
  #rest = "";
  #fence: string | undefined;
  #isJoined = false;
  /** What came out is the text up to the last of them. */
  #starts: BlockStart[] = [START];
  #source = "";

  /** What has come and is not complete. */
  get rest(): MarkdownBlock | undefined {
    if (this.#rest.trim() === "" && this.#fence === undefined) return undefined;
    return this.#rest === "" ? undefined : this.#block(this.#rest, this.#fence === undefined ? "markdown" : "code");
  }

  /** Takes a piece in; what is complete with it. */
  add(text: string): readonly MarkdownBlock[] {
    // A carriage return is a blank here, which keeps the count of characters.
    const piece = text.replaceAll("\r", " ");
    this.#source += piece;
    this.#rest += piece;
    const blocks: MarkdownBlock[] = [];
    for (let before = -1; before !== this.#rest.length && this.#rest !== "";) {
      before = this.#rest.length;
      blocks.push(...(this.#fence === undefined ? this.#complete() : this.#completeCode(this.#fence)));
    }
    if (this.#rest.length > BLOCK_CHARS_MAX) blocks.push(...this.#takeAll());
    return blocks;
  }

  /** The text is over; what was left of it. */
  end(): readonly MarkdownBlock[] {
    const blocks = this.#takeAll();
    this.#fence = undefined;
    this.#isJoined = false;
    this.#source = "";
    this.#starts = [START];
    return blocks;
  }

  /**
   * So many characters at the end are void. Where they have come out, what is left of their block is told again with what follows, and true
   * is answered: it stands on the screen twice.
   */
  retract(chars: number): boolean {
    const out = this.#source.length - this.#rest.length;
    this.#source = this.#source.slice(0, Math.max(0, this.#source.length - chars));
    if (this.#source.length >= out) {
      this.#rest = this.#source.slice(out);
      return false;
    }
    this.#starts = this.#starts.filter(({ at }) => at <= this.#source.length);
    const { at, fence, isJoined } = this.#starts.at(-1) ?? START;
    this.#rest = this.#source.slice(at);
    this.#fence = fence;
    this.#isJoined = isJoined;
    return true;
  }

  #complete(): readonly MarkdownBlock[] {
    const tokens = blocksOf(this.#rest) as Tokens.Generic[];
    const last = tokens.findLastIndex(({ type }) => type !== "space");
    const blocks = tokens.slice(0, Math.max(0, last)).flatMap((token) => this.#takeToken(token));
    const open = tokens[last];
    if (open === undefined) return [];
    const isFollowed = last < tokens.length - 1 || /\n[ \t]*\n$/.test(open.raw);
    if (open.type === "code" && /^ {0,3}(`{3,}|~{3,})/.test(open.raw)) return [...blocks, ...this.#openFence()];
    // The last item of a list may go on.
    if (open.type === "list") return [...blocks, ...this.#takeItems((open as Tokens.List).items.slice(0, -1))];
    const isLine = (open.type === "heading" && open.raw.startsWith("#")) || open.type === "hr";
    if (isFollowed || (isLine && this.#rest.endsWith("\n"))) return [...blocks, ...this.#takeToken(open)];
    return blocks;
  }

  #takeToken(token: Tokens.Generic): readonly MarkdownBlock[] {
    const { type, raw } = token;
    if (type === "list") return this.#takeList(token as Tokens.List);
    if (type === "code" && /^ {0,3}(`{3,}|~{3,})/.test(raw)) {
      const lines = raw.trimEnd().split("\n").slice(1);
      const isClosed = /^ {0,3}(`{3,}|~{3,})\s*$/.test(lines.at(-1) ?? "");
      const code = (isClosed ? lines.slice(0, -1) : lines).map((text, index): MarkdownBlock => ({
        kind: "code",
        text,
        isJoined: index > 0,
      }));
      this.#consume(raw.length, false);
      return code;
    }
    const block = this.#block(raw, "markdown");
    this.#consume(raw.length, false);
    return type === "space" ? [] : [block];
  }

  #takeList({ items, raw }: Tokens.List): readonly MarkdownBlock[] {
    const blocks = this.#takeItems(items);
    this.#consume(raw.length - items.reduce((sum, item) => sum + item.raw.length, 0), false);
    return blocks;
  }

  #takeItems(items: readonly Tokens.ListItem[]): readonly MarkdownBlock[] {
    return items.map(({ raw }) => {
      const block = this.#block(raw, "markdown");
      this.#consume(raw.length, true);
      return block;
    });
  }

  #openFence(): readonly MarkdownBlock[] {
    const end = this.#rest.indexOf("\n");
    if (end < 0) return [];
    this.#fence = /(`{3,}|~{3,})/.exec(this.#rest)?.[0] ?? "```";
    this.#consume(end + 1, false);
    return [];
  }

  #completeCode(fence: string): readonly MarkdownBlock[] {
    const end = this.#rest.indexOf("\n");
    if (end < 0) return [];
    const line = this.#rest.slice(0, end);
    const closing = line.trim();
    if (closing.startsWith(fence) && closing.replaceAll(fence.charAt(0), "") === "") {
      this.#fence = undefined;
      this.#consume(end + 1, false);
      return [];
    }
    const block = this.#block(line, "code");
    this.#consume(end + 1, true);
    return [block];
  }

  #takeAll(): readonly MarkdownBlock[] {
    const { rest } = this;
    this.#consume(this.#rest.length, true);
    if (rest === undefined) return [];
    const isFence = rest.kind === "code" && this.#fence !== undefined && rest.text.trim() === this.#fence;
    return isFence ? [] : [rest];
  }

  #block(text: string, kind: MarkdownBlock["kind"]): MarkdownBlock {
    return { kind, text, isJoined: this.#isJoined };
  }

  #consume(chars: number, isJoined: boolean): void {
    this.#rest = this.#rest.slice(chars);
    this.#isJoined = isJoined;
    this.#starts.push({ at: this.#source.length - this.#rest.length, fence: this.#fence, isJoined });
  }
}
