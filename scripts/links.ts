/** What a Markdown file links to inside the repository, and which of its headings can be linked to. Pure text work. */

import { posix } from "node:path";

/** A link whose target does not exist, as a line to print. */
export type BrokenLink = string;

interface Link {
  readonly line: number;
  readonly target: string;
}

/** The lines of a Markdown text; those of fenced code are empty. */
function proseLines(text: string): string[] {
  let fence: string | undefined;
  return text.split("\n").map((line) => {
    const mark = /^\s*(```+|~~~+)/.exec(line)?.[1];
    if (fence === undefined && mark === undefined) return line;
    if (fence === undefined) fence = mark;
    else if (mark !== undefined && mark.startsWith(fence)) fence = undefined;
    return "";
  });
}

/** The links of a Markdown text: inline, by reference and in HTML. Code spans are no links. */
export function linksOf(text: string): Link[] {
  return proseLines(text).flatMap((prose, index) => {
    const line = prose.replaceAll(/`[^`]*`/g, (code) => " ".repeat(code.length));
    const inline = [...line.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)/g)];
    const byReference = [...line.matchAll(/^\s*\[[^\]]+\]:\s*<?([^\s>]+)>?/g)];
    const html = [...line.matchAll(/(?:href|src)="([^"]+)"/g)];
    return [...inline, ...byReference, ...html].map((match) => ({ line: index + 1, target: match[1] ?? "" }));
  });
}

/** The anchors of a Markdown text's headings, as forges make them: `## One thing` is `one-thing`, the second one `one-thing-1`. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const line of proseLines(text)) {
    const heading = /^#{1,6}\s+(.*?)\s*#*$/.exec(line)?.[1];
    if (heading === undefined) continue;
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-");
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/**
 * The links of `file` that lead nowhere. `files` are the paths of the repository's files, `read` gives the text of one.
 * Links that leave the repository (with a scheme) are not followed.
 */
export function brokenLinks(file: string, files: ReadonlySet<string>, read: (file: string) => string): BrokenLink[] {
  const isThere = (path: string): boolean => files.has(path) || path === "." || [...files].some((name) => name.startsWith(`${path}/`));
  return linksOf(read(file)).flatMap(({ line, target }) => {
    if (/^[a-z][a-z+.-]*:/i.test(target)) return [];
    const [path = "", anchor] = decodeURI(target).split("#");
    const where = path === "" ? file : posix.normalize(posix.join(posix.dirname(file), path)).replace(/\/$/, "");
    if (where.startsWith("..") || !isThere(where)) return [`${file}:${line}: "${target}" leads nowhere`];
    const isLost = anchor !== undefined && where.endsWith(".md") && !anchorsOf(read(where)).has(anchor);
    return isLost ? [`${file}:${line}: "${target}": ${where} has no such heading`] : [];
  });
}
