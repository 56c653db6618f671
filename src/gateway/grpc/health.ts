/** The standard health service: for the server as a whole and for each of its services, which live and drain together. */

import { create, toBinary } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/errors.ts";
import {
  HealthCheckResponse_ServingStatus as ServingStatus,
  HealthCheckResponseSchema,
  type HealthCheckRequest,
  type HealthCheckResponse,
} from "../../gen/grpc/health/v1/health_pb.ts";
import type { Health, ServingState } from "../contract.ts";

/** The handlers of `grpc.health.v1.Health`. They are open to callers without a token, as orchestrators are. */
export interface HealthService {
  check(request: HealthCheckRequest): Promise<HealthCheckResponse>;
  watch(request: HealthCheckRequest, signal: AbortSignal): AsyncGenerator<HealthCheckResponse, void, undefined>;
}

/** `services` are the full names that may be asked about, beside "". */
export function createHealthService(health: Health, services: readonly string[]): HealthService {
  const known = new Set(["", ...services]);
  return {
    async check({ service }) {
      if (!known.has(service))
        throw new HoldfastError("not_found", "service: this server has no service of this name", { field: "service" });
      return answer(statusOfState(health.state));
    },

    async *watch({ service }, signal) {
      if (!known.has(service)) {
        yield answer(ServingStatus.SERVICE_UNKNOWN);
        await aborted(signal);
        return;
      }
      yield* watchStates(health, signal);
    },
  };
}

async function* watchStates(health: Health, signal: AbortSignal): AsyncGenerator<HealthCheckResponse, void, undefined> {
  let wake: () => void = () => undefined;
  const onChange = (): void => wake();
  const unwatch = health.watch(onChange);
  signal.addEventListener("abort", onChange, { once: true });
  let told: ServingStatus | undefined;
  try {
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => (wake = resolve));
      const status = statusOfState(health.state);
      if (status !== told) {
        told = status;
        yield answer(status);
      }
      // A change while the answer was being sent has its promise settled already.
      if (statusOfState(health.state) === told && !isAborted(signal)) await changed;
    }
  } finally {
    unwatch();
    signal.removeEventListener("abort", onChange);
  }
}

/** The encoding of an answer of Watch. */
export function* healthBytes(response: HealthCheckResponse): Generator<Uint8Array> {
  yield toBinary(HealthCheckResponseSchema, response);
}

function answer(status: ServingStatus): HealthCheckResponse {
  return create(HealthCheckResponseSchema, { status });
}

function statusOfState(state: ServingState): ServingStatus {
  return state === "serving" ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
}

/** Whether the signal fired while nobody looked; the compiler takes a look before for one now. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
