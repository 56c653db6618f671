/** Registrations of harnesses as a person reads them: in a list, and one alone. Pure. */

import { Resumability, type Capabilities, type HarnessDescriptor } from "../gen/agentsessions/v1/harness_pb.ts";
import { HarnessSource, HarnessState, RegisterOutcome, type HarnessRegistration } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { columnLines } from "./columns.ts";
import { plainLine } from "./plain.ts";
import { timeOf } from "./session-text.ts";

const COLUMNS = ["NAME", "SOURCE", "STATE", "CREATED", "PLACEMENT"] as const;

/** Registrations under a heading. */
export function registrationTable(harnesses: readonly HarnessRegistration[], bold: (text: string) => string): readonly string[] {
  const rows = harnesses.map((harness) => [
    plainLine(harness.metadata?.name ?? ""),
    sourceOf(harness),
    registrationState(harness),
    timeOf(harness.metadata?.createTime),
    plainLine(placementOf(harness)),
  ]);
  return columnLines(COLUMNS, rows, bold);
}

/** One registration, a fact on each line. */
export function registrationLines(harness: HarnessRegistration): readonly string[] {
  const { metadata, spec, observed } = harness;
  const facts: readonly (readonly [string, string])[] = [
    ["harness", metadata?.name ?? ""],
    ["uid", metadata?.uid ?? ""],
    ["source", sourceOf(harness)],
    ["state", registrationState(harness)],
    ["placement", placementOf(harness)],
    ["id", spec?.descriptorId ?? ""],
    ["needs", needsOf(spec?.capabilities)],
    ["digest", harness.specDigest],
    ["created", timeOf(metadata?.createTime)],
    ["retired", timeOf(harness.retireTime)],
    ["because", harness.retireReason],
    ["observed", observed === undefined ? "" : descriptorText(observed)],
    ["no answer", harness.observeError],
    ["unservable", harness.unservableReason],
  ];
  return facts.filter(([, value]) => value !== "").map(([name, value]) => `${name.padEnd(12)}${plainLine(value)}`);
}

/** The state in one word. */
export function registrationState({ state }: Pick<HarnessRegistration, "state">): string {
  switch (state) {
    case HarnessState.ACTIVE:
      return "active";
    case HarnessState.RETIRED:
      return "retired";
    default:
      return "unknown";
  }
}

/** What a registration did, in one word. */
export function outcomeText(outcome: RegisterOutcome): string {
  switch (outcome) {
    case RegisterOutcome.CREATED:
      return "created";
    case RegisterOutcome.UNCHANGED:
      return "unchanged";
    case RegisterOutcome.REACTIVATED:
      return "reactivated";
    default:
      return "unknown";
  }
}

function sourceOf({ source }: HarnessRegistration): string {
  switch (source) {
    case HarnessSource.STATIC:
      return "static";
    case HarnessSource.REGISTERED:
      return "registered";
    default:
      return "unknown";
  }
}

function placementOf({ spec }: HarnessRegistration): string {
  switch (spec?.placement.case) {
    case "remote":
      return spec.placement.value.address;
    case "substrate":
      return `substrate ${spec.placement.value.atespace}/${spec.placement.value.template}`;
    case undefined:
      return "";
  }
}

function needsOf(capabilities: Capabilities | undefined): string {
  if (capabilities === undefined) return "";
  const words: readonly (readonly [boolean, string])[] = [
    [capabilities.resumability === Resumability.REQUIRES_MEMORY_SNAPSHOT, "memory snapshots"],
    [capabilities.requiresGpu, "an accelerator"],
  ];
  return words.flatMap(([needed, word]) => (needed ? [word] : [])).join(", ") || "nothing";
}

function descriptorText({ id, version, tools, capabilities }: HarnessDescriptor): string {
  const parts = [id, version === "" ? "" : `version ${version}`, `needs ${needsOf(capabilities) || "nothing"}`];
  if (tools.length > 0) parts.push(`tools ${tools.map(({ name }) => name).join(", ")}`);
  return parts.filter((part) => part !== "").join("; ");
}
