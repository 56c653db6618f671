import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HarnessSpecSchema } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { describeHarness, Resumability } from "../spi/index.ts";
import {
  harnessAddress,
  harnessName,
  harnessSpec,
  retireReason,
  SOCKET_PATH_BYTES_MAX,
  strangerReason,
  unservableReason,
} from "./registry-spec.ts";

type SpecInit = MessageInitShape<typeof HarnessSpecSchema>;
const spec = (init: SpecInit) => create(HarnessSpecSchema, init);
const remote = (address: string, init: SpecInit = {}) => spec({ placement: { case: "remote", value: { address } }, ...init });
const HERE = "127.0.0.1:7000";
/** What no client of ours sends. */
const STRANGE = 9 as Resumability;

describe("a harness's name", () => {
  it.each(["a", "0", "coder", "coder-2", "a".repeat(63), "0--9"])("may be %s", (name) => expect(harnessName(name)).toBe(name));

  it.each(["", "A", "coder_2", "-a", "a-", "a.b", "a b", "é", "a\n", "a".repeat(64)])("may not be %j", (name) => {
    expect(() => harnessName(name)).toThrow(/^name: must be 1 to 63 lowercase letters/);
  });
});

describe("a harness's address", () => {
  const longest = `unix:///${"p".repeat(SOCKET_PATH_BYTES_MAX - 1)}`;
  it.each([HERE, "localhost:1", "coder.agents.svc:65535", "[::1]:7000", "unix:///run/coder.sock", longest])("may be %s", (address) => {
    expect(harnessAddress(address, "a")).toBe(address);
  });

  it.each([
    "",
    "coder",
    "coder:",
    ":7000",
    "coder:0",
    "coder:65536",
    "http://coder:7000",
    "coder:7000/path",
    "a b:7000",
    "-a:7000",
    "::1:7000",
    "unix:/run/a",
    "unix://run/a",
    "unix:///",
    "unix:///a\u0000b",
    `${longest}p`,
    `${"a".repeat(64)}:1`,
    `${"a.".repeat(127)}:1`,
    "coder:7000\n",
  ])("may not be %j", (address) => {
    expect(() => harnessAddress(address, "spec.remote.address")).toThrow(/^spec\.remote\.address: /);
  });
});

describe("a spec", () => {
  it("is kept as it was given, and nothing else of it", () => {
    const given = remote(HERE, { capabilities: { requiresGpu: true, resumability: Resumability.STATELESS_REPLAY }, descriptorId: "coder" });
    expect(harnessSpec(given)).toEqual(given);
    const substrate = spec({ placement: { case: "substrate", value: { atespace: "agents", template: "coder" } } });
    expect(harnessSpec(substrate)).toEqual(substrate);
    given.$unknown = [{ no: 99, wireType: 0, data: Uint8Array.of(1) }];
    expect(harnessSpec(given).$unknown).toBeUndefined();
  });

  it.each([
    ["spec", undefined],
    ["spec", spec({})],
    ["spec.remote.address", remote("nowhere")],
    ["spec.substrate.atespace", spec({ placement: { case: "substrate", value: { template: "t" } } })],
    ["spec.substrate.template", spec({ placement: { case: "substrate", value: { atespace: "s", template: "t".repeat(254) } } })],
    ["spec.capabilities.resumability", remote(HERE, { capabilities: { resumability: STRANGE } })],
    ["spec.descriptor_id", remote(HERE, { descriptorId: "a\nb" })],
    ["spec.descriptor_id", remote(HERE, { descriptorId: " a" })],
    ["spec.descriptor_id", remote(HERE, { descriptorId: "a".repeat(257) })],
  ])("is refused by %s", (field, given) => {
    expect(() => harnessSpec(given)).toThrow(expect.objectContaining({ code: "invalid_argument", field }));
  });

  it("has a reason of bounded plain text for its end", () => {
    expect(retireReason("")).toBe("");
    expect(retireReason("replaced by coder-2")).toBe("replaced by coder-2");
    for (const reason of ["a\u001bb", "\ud800", "a".repeat(1_025)]) expect(() => retireReason(reason)).toThrow(/^reason: /);
  });
});

describe("a spec that this host cannot serve", () => {
  it("says why", () => {
    expect(unservableReason(remote(HERE))).toBe("");
    expect(unservableReason(remote(HERE, { capabilities: { resumability: Resumability.STATELESS_REPLAY } }))).toBe("");
    expect(unservableReason(spec({ placement: { case: "substrate", value: {} } }))).toBe("this host has no substrate runtime");
    const keepsMemory = remote(HERE, { capabilities: { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT } });
    expect(unservableReason(keepsMemory)).toContain("has no memory_snapshot");
    expect(unservableReason(remote(HERE, { capabilities: { requiresGpu: true } }))).toContain("has no gpu_state");
  });

  it("is told from a harness that is another", () => {
    const coder = describeHarness({ id: "coder", version: "1" });
    expect(strangerReason(remote(HERE, { descriptorId: "coder" }), coder)).toBe("");
    expect(strangerReason(remote(HERE), coder)).toBe("");
    expect(strangerReason(remote(HERE, { descriptorId: "painter" }), coder)).toContain("another descriptor id");
  });
});
