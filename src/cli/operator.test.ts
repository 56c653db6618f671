import { describe, expect, it } from "vitest";
import { chooseOperator, OPERATOR_ADDRESS } from "./operator.ts";

describe("where the operator's port is looked for", () => {
  it.each([
    ["http://127.0.0.1:9000", "http://127.0.0.1:9001"],
    ["localhost:9000", "http://127.0.0.1:9001"],
    ["https://[::1]:8443", "http://127.0.0.1:8444"],
    ["https://localhost", "http://127.0.0.1:444"],
    ["http://localhost", "http://127.0.0.1:81"],
    ["embedded", OPERATOR_ADDRESS],
    ["", OPERATOR_ADDRESS],
  ])("follows from HOLDFAST_SERVER=%s: %s", (server, address) => {
    const chosen = chooseOperator(undefined, { HOLDFAST_SERVER: server });
    expect(chosen).toEqual({ address, hint: expect.stringContaining("opens it beside its own") as string });
  });

  it.each(["http://holdfast.example:8080", "unix:///run/holdfast.sock", "127.0.0.1:65535", "not an address"])(
    "does not follow from %s, and the hint says so",
    (server) => {
      const chosen = chooseOperator(undefined, { HOLDFAST_SERVER: server });
      expect(chosen).toEqual({
        address: OPERATOR_ADDRESS,
        hint: expect.stringContaining("does not follow from HOLDFAST_SERVER") as string,
      });
    },
  );

  it("is what was said, before anything else", () => {
    const environment = { HOLDFAST_SERVER: "127.0.0.1:9000", HOLDFAST_OPERATOR: " 127.0.0.1:7 " };
    expect(chooseOperator("127.0.0.1:5", environment).address).toBe("127.0.0.1:5");
    expect(chooseOperator(undefined, environment).address).toBe("127.0.0.1:7");
    expect(chooseOperator(undefined, {}).address).toBe(OPERATOR_ADDRESS);
  });
});
