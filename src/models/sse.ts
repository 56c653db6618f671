/** Server-sent events out of a body. Only their data is read: the one provider that needs this names no events. */

/** The data of each event, as JSON. Throws a SyntaxError for data that is none. An event that the end cuts off is dropped. */
export async function* jsonEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<unknown, void, undefined> {
  let data: string[] = [];
  for await (const line of lines(body)) {
    if (line === "") {
      if (data.length > 0) yield JSON.parse(data.join("\n")) as unknown;
      data = [];
    } else if (line.startsWith("data:")) {
      data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
    }
  }
}

/** Lines end with CR, LF, or both; what follows the last end of a line is none. */
async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    // A CR at the end may be half of a line's end.
    const held = rest.endsWith("\r") ? "\r" : "";
    const whole = rest.slice(0, rest.length - held.length).split(/\r\n|\n|\r/);
    rest = (whole.pop() ?? "") + held;
    yield* whole;
  }
  if (rest.endsWith("\r")) yield rest.slice(0, -1);
}
