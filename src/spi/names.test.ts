import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

/** Every exported name of the contract's Go SPI. */
const CONTRACT_NAMES = `
ErrApprovalParked ErrSnapshotSuperseded IsParkUnwind ApprovalDecision ApprovalParkedError ApprovalRef ApprovalRequest ApprovalResult
Capabilities ComputeRef ComputeState DeletionState Delta Descriptor Error Event EventKind EventSink ExecState ExecutionStart FilePart
ForkOpts Harness HarnessEnd IdentityContext IdentityRef Incarnation Lifecycle LifecycleKind Mediation Message TextMessage Message.Text
ModelCall ModelRequest ModelResponse Origin Part ReasoningPart Resumability Runtime RuntimeCapabilities Session SessionSpec SnapshotKind
SnapshotRef Start TextPart TokenMinter ToolCall ToolChoice ToolChoiceMode ToolDefinition ToolResult ToolResultCode ToolSpec Usage
`
  .trim()
  .split(/\s+/);

describe("docs/spi.md", () => {
  const table = readFileSync(new URL("../../docs/spi.md", import.meta.url), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split("|")[1] ?? "")
    .join(" ");

  it.each(CONTRACT_NAMES)("says what became of %s", (name) => {
    expect(table).toContain(`\`${name}\``);
  });
});
