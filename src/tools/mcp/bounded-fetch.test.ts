import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { boundedFetch } from "./bounded-fetch.ts";

/** What a body that `write` makes comes to, read within 100 bytes a message. */
async function bodyOf(write: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => write(response)).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  const response = await boundedFetch(100)(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`);
  return response.text();
}

const event = (data: string, end = "\n") => `event: message${end}data: ${data}${end}${end}`;

describe("a bounded fetch", () => {
  it("takes any number of events that are each within the bound, however lines end", async () => {
    const many = Array.from({ length: 20 }, () => event("x".repeat(60)));
    expect(await bodyOf((response) => response.end(many.join("")))).toBe(many.join(""));
    const windows = Array.from({ length: 20 }, () => event("x".repeat(60), "\r\n"));
    expect(await bodyOf((response) => response.end(windows.join("")))).toBe(windows.join(""));
  });

  it("fails at an event, and at a body, that is larger", async () => {
    await expect(bodyOf((response) => response.end(event("x".repeat(200))))).rejects.toThrow();
    await expect(bodyOf((response) => response.end(`${event("x")}${"data: x\n".repeat(30)}\n`))).rejects.toThrow();
    await expect(bodyOf((response) => void response.write("x".repeat(101)))).rejects.toThrow();
    await expect(bodyOf((response) => response.end("x".repeat(100)))).resolves.toHaveLength(100);
  });
});
