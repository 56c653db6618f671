/**
 * The few globals that the core may use. Every JavaScript platform has them: Node, browsers, workers, the simulator.
 * Anything else (clocks, timers, randomness, sockets, files) reaches the core through a port.
 */

interface AbortSignalEventTarget {
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

interface AbortSignal extends AbortSignalEventTarget {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
}

declare var AbortSignal: {
  any(signals: readonly AbortSignal[]): AbortSignal;
};

interface AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}

declare var AbortController: { new (): AbortController };

interface TextEncoder {
  encode(input?: string): Uint8Array<ArrayBuffer>;
  encodeInto(source: string, destination: Uint8Array): { read: number; written: number };
}

declare var TextEncoder: { new (): TextEncoder };

interface TextDecoder {
  decode(input?: Uint8Array): string;
}

declare var TextDecoder: { new (label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder };

declare function btoa(data: string): string;
declare function atob(data: string): string;

declare function queueMicrotask(task: () => void): void;
