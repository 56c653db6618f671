import { create } from "@bufbuild/protobuf";
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { HarnessSpecSchema } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { canonical } from "../testing/canonical-reference.ts";
import { testDigest as digest } from "../testing/ports.ts";
import { specDigest } from "./index.ts";

describe("the digest of a harness spec", () => {
  it("is sha256: and the hash of the canonical JSON, with the proto's field names", () => {
    const spec = create(HarnessSpecSchema, {
      placement: { case: "remote", value: { address: "unix:///run/h.sock" } },
      capabilities: { resumability: 1, forkSafe: true },
      descriptorId: "echo",
    });
    const json = {
      descriptor_id: "echo",
      remote: { address: "unix:///run/h.sock" },
      capabilities: { resumability: "RESUMABILITY_STATELESS_REPLAY", fork_safe: true },
    };
    expect(specDigest(spec, digest)).toBe(`sha256:${hash("sha256", canonical(json))}`);
  });

  it("tells an empty placement from none", () => {
    const none = create(HarnessSpecSchema);
    const empty = create(HarnessSpecSchema, { placement: { case: "substrate", value: {} } });
    expect(specDigest(none, digest)).toBe(`sha256:${hash("sha256", "{}")}`);
    expect(specDigest(empty, digest)).toBe(`sha256:${hash("sha256", '{"substrate":{}}')}`);
  });
});
