/** Traces of the machine on which a file was written: its folders, and the hosts that packages came from. Pure text work. */

/** A thing that no committed file may hold. No pattern matches its own source. */
const TRACES: readonly { readonly what: string; readonly pattern: RegExp }[] = [
  { what: "a folder of somebody's machine", pattern: /(?<![\w.$}*-])\/(?:work|root)\// },
  { what: "somebody's home folder", pattern: /(?<![\w.$}*-])\/(?:home|Users)\/[a-z]/ },
  { what: "a Windows folder", pattern: /\b[A-Z]:\\+(?:Users|Windows|Program)/ },
  { what: "a download address", pattern: /"resolved": "https?:/ },
  { what: "a package registry's host", pattern: /\bregistry\.[a-z0-9-]+\.[a-z]/ },
  { what: "a package registry's host", pattern: /\b(?:npmjs\.(?:org|com)|npmmirror\.|yarnpkg\.|pypi\.org|pythonhosted\.)/ },
];

/** The lines of `text` that hold a trace, as lines to print. */
export function tracesIn(file: string, text: string): string[] {
  return text.split("\n").flatMap((line, index) => {
    const found = TRACES.find(({ pattern }) => pattern.test(line));
    return found === undefined ? [] : [`${file}:${index + 1}: ${found.what}`];
  });
}
