/** Whether a JSON text says the same to every reader. */

/**
 * What in a valid JSON `text` one reader may see otherwise than another: a key that occurs twice (a parser keeps the last, a person
 * may see the first), or a number that is rounded, or could be, when it is read. Undefined when there is nothing of the kind.
 */
export function doubtIn(text: string): string | undefined {
  // The keys of the objects and lists that are open; a list has none.
  const open: (Set<string> | undefined)[] = [];
  for (const [token] of text.matchAll(TOKEN)) {
    switch (token[0]) {
      case "{":
        open.push(new Set());
        break;
      case "[":
        open.push(undefined);
        break;
      case "}":
      case "]":
        open.pop();
        break;
      case '"':
        if (token.endsWith(":") && isRepeated(token, open.at(-1))) return "has a key twice";
        break;
      default:
        if (String(Number(token)) !== token) return "has a number that its readers may round";
    }
  }
  return undefined;
}

/** Brackets, strings (a key with its colon), numbers. */
const TOKEN = /[{}[\]]|"(?:[^"\\]|\\.)*"(?:\s*:)?|-?\d[\d.eE+-]*/g;

function isRepeated(token: string, keys: Set<string> | undefined): boolean {
  const key: unknown = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1));
  if (keys === undefined || typeof key !== "string") return false;
  if (keys.has(key)) return true;
  keys.add(key);
  return false;
}
