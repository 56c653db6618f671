import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { executionIdOf, fenceOf, sessionUidOf } from "../base/index.ts";
import { HarnessDescriptorSchema, type HarnessDescriptor } from "../gen/agentsessions/v1/harness_pb.ts";
import type { Harness } from "../spi/index.ts";
import { createHarnessCatalog } from "./catalog.ts";

/** A harness whose descriptor comes when it is told to, and which counts how often it was asked. */
class AskedHarness implements Harness {
  asked = 0;
  #answers: PromiseWithResolvers<HarnessDescriptor>[] = [];

  describe(): Promise<HarnessDescriptor> {
    const answer = Promise.withResolvers<HarnessDescriptor>();
    this.asked++;
    this.#answers.push(answer);
    return answer.promise;
  }

  answer(): void {
    this.#answers.shift()?.resolve(create(HarnessDescriptorSchema, { id: "asked", version: "1" }));
  }

  fail(): void {
    this.#answers.shift()?.reject(new Error("not yet"));
  }

  async run(): Promise<void> {}
}

const attachment = {
  sessionUid: sessionUidOf("s"),
  executionId: executionIdOf("e"),
  fence: fenceOf(1),
  identity: undefined,
  compute: undefined,
  descriptor: create(HarnessDescriptorSchema),
};

describe("a catalog of harnesses in this process", () => {
  it("finds a harness by its name and nothing by another", async () => {
    const harness = new AskedHarness();
    const catalog = createHarnessCatalog({ asked: harness });
    expect(catalog.find("other")).toBeUndefined();
    expect(catalog.find("toString")).toBeUndefined();
    const entry = catalog.find("asked");
    expect(entry).toMatchObject({ name: "asked", source: "static", open: true });
    await expect(entry?.attach({ ...attachment, signal: new AbortController().signal })).resolves.toEqual({ harness });
  });

  it("asks for a descriptor once, however many want it", async () => {
    const harness = new AskedHarness();
    const entry = createHarnessCatalog({ asked: harness }).find("asked");
    const one = entry?.describe();
    const other = entry?.describe();
    harness.answer();
    const first = await one;
    expect(await other).toBe(first);
    expect(await entry?.describe()).toBe(first);
    expect(harness.asked).toBe(1);
  });

  it("asks again after it could not have one", async () => {
    const harness = new AskedHarness();
    const entry = createHarnessCatalog({ asked: harness }).find("asked");
    const failed = entry?.describe();
    harness.fail();
    await expect(failed).rejects.toThrow("not yet");
    const again = entry?.describe();
    harness.answer();
    await expect(again).resolves.toMatchObject({ id: "asked" });
  });

  it("lets one caller give up without taking the answer from the others", async () => {
    const harness = new AskedHarness();
    const entry = createHarnessCatalog({ asked: harness }).find("asked");
    const impatient = new AbortController();
    const given = entry?.describe({ signal: impatient.signal });
    const patient = entry?.describe({ signal: new AbortController().signal });
    impatient.abort(new Error("enough"));
    await expect(given).rejects.toThrow("enough");
    harness.answer();
    await expect(patient).resolves.toMatchObject({ id: "asked" });
    expect(harness.asked).toBe(1);
  });

  it("attaches nothing for a turn that is over", async () => {
    const entry = createHarnessCatalog({ asked: new AskedHarness() }).find("asked");
    const signal = AbortSignal.abort(new Error("over"));
    await expect(entry?.attach({ ...attachment, signal })).rejects.toThrow("over");
  });

  it("refuses a harness without a name", () => {
    expect(() => createHarnessCatalog({ "": new AskedHarness() })).toThrow("every harness must have a name");
  });
});

describe("a harness in plain JavaScript", () => {
  const plain = (fields: object): Harness => Object.assign({} as Harness, { run: async () => undefined }, fields);

  it("may leave fields of its descriptor out", async () => {
    const catalog = createHarnessCatalog({ shout: plain({ describe: async () => ({ id: "shout", version: "1" }) }) });
    expect(await catalog.find("shout")?.describe()).toMatchObject({ id: "shout", version: "1", tools: [], models: [] });
  });

  it("is refused without its functions", () => {
    expect(() => createHarnessCatalog({ shout: plain({}) })).toThrow(/shout must have the functions/);
  });
});
