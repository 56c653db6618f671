/** What may be registered: names, addresses and specs, found valid by the field; and whether this host can serve one. Pure. */

import { create } from "@bufbuild/protobuf";
import { utf8Length } from "../base/bytes.ts";
import { invalidArgument } from "../base/errors.ts";
import { CapabilitiesSchema, HarnessDescriptorSchema, Resumability, type Capabilities } from "../gen/agentsessions/v1/harness_pb.ts";
import {
  HarnessSpecSchema,
  RemotePlacementSchema,
  SubstratePlacementSchema,
  type HarnessSpec,
} from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { RuntimeCapabilitiesSchema } from "../gen/agentsessions/v1/session_pb.ts";
import type { HarnessDescriptor, HarnessEntry } from "../spi/index.ts";
import { canPlace } from "./can-place.ts";

/** The longest path of a unix socket, in bytes, that every system takes. */
export const SOCKET_PATH_BYTES_MAX = 103;
/** The longest atespace or template. */
export const SUBSTRATE_CHARS_MAX = 253;
/** The longest id of a descriptor. */
export const DESCRIPTOR_ID_CHARS_MAX = 256;
/** The longest reason for which a harness is retired. */
export const REASON_CHARS_MAX = 1_024;

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** `name` if it is an RFC 1123 label. Throws INVALID_ARGUMENT. */
export function harnessName(name: string, field = "name"): string {
  if (LABEL.test(name)) return name;
  throw invalidArgument(field, "must be 1 to 63 lowercase letters, digits and hyphens, and begin and end with a letter or a digit");
}

const ADDRESS_FORMS = "must be unix:///path or host:port, such as 127.0.0.1:7000 or [::1]:7000";
const DNS_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const HOST_AND_PORT = new RegExp(
  String.raw`^(?:\[[0-9A-Fa-f:.]{2,45}\]|(?=[^:]{1,253}:)${DNS_LABEL}(?:\.${DNS_LABEL})*\.?):(?<port>\d{1,5})$`,
);

/** `address` if a harness can listen there. Throws INVALID_ARGUMENT. */
export function harnessAddress(address: string, field: string): string {
  if (address.startsWith("unix:")) return socketAddress(address, field);
  const port = Number(HOST_AND_PORT.exec(address)?.groups?.["port"]);
  if (!(port >= 1 && port <= 65_535)) throw invalidArgument(field, ADDRESS_FORMS);
  return address;
}

function socketAddress(address: string, field: string): string {
  const path = address.slice("unix://".length);
  if (!address.startsWith("unix:///") || path.length < 2 || !isPlain(path)) throw invalidArgument(field, ADDRESS_FORMS);
  if (utf8Length(path) > SOCKET_PATH_BYTES_MAX) {
    throw invalidArgument(field, `the path of a socket must have at most ${SOCKET_PATH_BYTES_MAX} bytes`);
  }
  return address;
}

/** A spec as it is kept: its known fields and nothing else. Throws INVALID_ARGUMENT that names the field. */
export function harnessSpec(spec: HarnessSpec | undefined): HarnessSpec {
  if (spec === undefined) throw invalidArgument("spec", "must be given");
  return create(HarnessSpecSchema, {
    placement: placementOf(spec.placement),
    ...(spec.capabilities === undefined ? {} : { capabilities: capabilitiesOf(spec.capabilities) }),
    descriptorId: text(spec.descriptorId, "spec.descriptor_id", DESCRIPTOR_ID_CHARS_MAX),
  });
}

function placementOf(placement: HarnessSpec["placement"]): HarnessSpec["placement"] {
  switch (placement.case) {
    case "remote": {
      const address = harnessAddress(placement.value.address, "spec.remote.address");
      return { case: "remote", value: create(RemotePlacementSchema, { address }) };
    }
    case "substrate": {
      const atespace = text(placement.value.atespace, "spec.substrate.atespace", SUBSTRATE_CHARS_MAX, 1);
      const template = text(placement.value.template, "spec.substrate.template", SUBSTRATE_CHARS_MAX, 1);
      return { case: "substrate", value: create(SubstratePlacementSchema, { atespace, template }) };
    }
    case undefined:
      throw invalidArgument("spec", "must have a placement: remote or substrate");
  }
}

const RESUMABILITIES: readonly Resumability[] = [
  Resumability.UNSPECIFIED,
  Resumability.STATELESS_REPLAY,
  Resumability.REQUIRES_MEMORY_SNAPSHOT,
];

function capabilitiesOf({ resumability, forkSafe, requiresGpu, streaming, reasoningReplay }: Capabilities): Capabilities {
  if (!RESUMABILITIES.includes(resumability)) {
    throw invalidArgument(
      "spec.capabilities.resumability",
      "must be RESUMABILITY_STATELESS_REPLAY or RESUMABILITY_REQUIRES_MEMORY_SNAPSHOT",
    );
  }
  return create(CapabilitiesSchema, { resumability, forkSafe, requiresGpu, streaming, reasoningReplay });
}

/** Why a harness is retired, found plain. Throws INVALID_ARGUMENT. */
export function retireReason(reason: string): string {
  return text(reason, "reason", REASON_CHARS_MAX);
}

function text(value: string, field: string, charsMax: number, charsMin = 0): string {
  if (value.length < charsMin) throw invalidArgument(field, "must be given");
  if (value.length > charsMax) throw invalidArgument(field, `must have at most ${charsMax} characters`);
  if (!isPlain(value) || value !== value.trim()) {
    throw invalidArgument(field, "must have no control characters, no lone surrogates, and no white space at its ends");
  }
  return value;
}

// oxlint-disable-next-line no-control-regex -- control characters are exactly what these texts must not hold.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

function isPlain(value: string): boolean {
  return !CONTROL.test(value) && value.isWellFormed();
}

/** The runtime under every harness that is served at an address: it captures nothing. */
export const REMOTE_RUNTIME: HarnessEntry["runtime"] = { name: "remote", capabilities: create(RuntimeCapabilitiesSchema) };

/** Why this host cannot serve a spec; "" when it can. */
export function unservableReason(spec: HarnessSpec): string {
  if (spec.placement.case === "substrate") return "this host has no substrate runtime";
  if (spec.capabilities === undefined) return "";
  const placement = canPlace(create(HarnessDescriptorSchema, { capabilities: spec.capabilities }), REMOTE_RUNTIME);
  return placement.kind === "placed" ? "" : placement.reason;
}

/** Why what answers is not what was registered; "" when it is. A spec without an id takes any. */
export function strangerReason(spec: HarnessSpec, descriptor: HarnessDescriptor): string {
  if (spec.descriptorId === "" || descriptor.id === spec.descriptorId) return "";
  return "what answers has another descriptor id than the registered one";
}
