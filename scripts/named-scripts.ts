/** The npm scripts that a Markdown text tells a reader to run. Pure text work. */

/** `npm run <script>` where package.json has no such script, as lines to print. */
export function unknownScripts(file: string, text: string, scripts: ReadonlySet<string>): string[] {
  return text.split("\n").flatMap((line, index) =>
    [...line.matchAll(/\bnpm run (?:-s |--silent )?([a-z][a-z0-9:-]*)/g)]
      .map((match) => match[1] ?? "")
      .filter((name) => !scripts.has(name))
      .map((name) => `${file}:${index + 1}: there is no script "${name}"`),
  );
}
