/**
 * The HarnessRegistry service: which harnesses this host may dial. It is an operator's, and no door of session clients has it.
 *
 * Invariant: what a harness says of itself is only told on, never relied upon, and a harness that hangs, lies or floods costs its own
 * answer.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { HoldfastError, toHoldfastError } from "../base/errors.ts";
import type { Ports } from "../base/ports.ts";
import { untilAborted } from "../base/until-aborted.ts";
import { specDigest } from "../canon/index.ts";
import { ResourceMetadataSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { HarnessDescriptorSchema, type HarnessDescriptor } from "../gen/agentsessions/v1/harness_pb.ts";
import {
  HarnessRegistrationSchema,
  HarnessSource,
  HarnessState,
  ListHarnessesResponseSchema,
  RegisterHarnessResponseSchema,
  RegisterOutcome,
  type GetHarnessRequest,
  type HarnessRegistration,
  type ListHarnessesRequest,
  type ListHarnessesResponse,
  type RegisterHarnessRequest,
  type RegisterHarnessResponse,
  type RetireHarnessRequest,
} from "../gen/agentsessions/v1/harness_registry_pb.ts";
import {
  canPlace,
  harnessName,
  harnessSpec,
  retireReason,
  strangerReason,
  unknownHarness,
  unservableReason,
  type HarnessRegistry,
  type KnownHarness,
} from "../placement/index.ts";
import type { Action, Authorizer, HarnessCatalog, HarnessEntry } from "../spi/index.ts";
import { authorize } from "./access.ts";
import type { CallContext } from "./contract.ts";
import { SERVICE_LIMITS } from "./limits.ts";
import { pageSizeOf } from "./list-request.ts";
import { openPageToken, sealPageToken, unreadableToken } from "./page-token.ts";

/** `agentsessions.v1.HarnessRegistry`. */
export interface HarnessRegistryService {
  registerHarness(request: RegisterHarnessRequest, context: CallContext): Promise<RegisterHarnessResponse>;
  getHarness(request: GetHarnessRequest, context: CallContext): Promise<HarnessRegistration>;
  listHarnesses(request: ListHarnessesRequest, context: CallContext): Promise<ListHarnessesResponse>;
  retireHarness(request: RetireHarnessRequest, context: CallContext): Promise<HarnessRegistration>;
}

/** The limits of the registry's calls. */
export interface RegistryLimits {
  /** How long a harness may take to say what it is. */
  readonly observeTimeoutMs: number;
  /** Bytes of a descriptor that is told on. */
  readonly descriptorBytesMax: number;
  /** Harnesses that are asked at once. */
  readonly observationsMax: number;
}

export const REGISTRY_LIMITS: RegistryLimits = { observeTimeoutMs: 5_000, descriptorBytesMax: 256 * 1024, observationsMax: 16 };

export interface HarnessRegistryOptions {
  readonly registry: HarnessRegistry;
  /** The same harnesses as they are used. */
  readonly harnesses: HarnessCatalog;
  readonly authorizer: Authorizer;
  readonly ports: Ports;
  readonly limits?: Partial<RegistryLimits> | undefined;
}

/** Creates the handlers. */
export function createHarnessRegistryService(options: HarnessRegistryOptions): HarnessRegistryService {
  const { registry, harnesses, ports } = options;
  const { clock, digest } = ports;
  const limits = { ...REGISTRY_LIMITS, ...options.limits };
  const observer = new Observer(clock, limits);
  const may = (action: Action, context: CallContext): Promise<void> => authorize(options.authorizer, action, { project: "" }, context);
  const told = (known: KnownHarness): HarnessRegistration => registrationOf(known, digest);
  return {
    async registerHarness(request, context) {
      await may("harness.operate", context);
      const { kind, row } = await registry.register(harnessName(request.name), harnessSpec(request.spec));
      return create(RegisterHarnessResponseSchema, { harness: told({ kind: "registered", row }), outcome: OUTCOMES[kind] });
    },

    async getHarness(request, context) {
      await may("harness.read", context);
      const known = registry.find(plainName(request.name));
      if (known === undefined) throw unknownHarness();
      const registration = told(known);
      if (request.observe) await observer.observe(registration, harnesses.find(request.name), context.signal);
      return registration;
    },

    async listHarnesses(request, context) {
      await may("harness.read", context);
      const includeRetired = request.includeRetired;
      const limit = pageSizeOf(request.pageSize, SERVICE_LIMITS, "harnesses");
      const after = request.pageToken === "" ? undefined : readToken(request.pageToken, digest);
      const page = registry.list({ after, limit, includeRetired });
      return create(ListHarnessesResponseSchema, {
        harnesses: page.harnesses.map(told),
        nextPageToken: page.next === undefined ? "" : sealPageToken([TOKEN_KIND, page.next], digest),
      });
    },

    async retireHarness(request, context) {
      await may("harness.operate", context);
      const row = await registry.retire(plainName(request.name), retireReason(request.reason));
      return told({ kind: "registered", row });
    },
  };
}

const OUTCOMES = {
  created: RegisterOutcome.CREATED,
  unchanged: RegisterOutcome.UNCHANGED,
  reactivated: RegisterOutcome.REACTIVATED,
} as const;

/** Sets these tokens apart from those of sessions. */
const TOKEN_KIND = "harness";

function readToken(token: string, digest: Ports["digest"]): string {
  const [kind, name, ...rest] = openPageToken(token, digest);
  if (kind !== TOKEN_KIND || typeof name !== "string" || rest.length > 0) throw unreadableToken();
  return name;
}

/** A static harness of a program may have a name that could not be registered. */
function plainName(name: string): string {
  return name === "" ? harnessName(name) : name;
}

function registrationOf(known: KnownHarness, digest: Ports["digest"]): HarnessRegistration {
  if (known.kind === "static") {
    const { name, spec } = known.harness;
    return create(HarnessRegistrationSchema, {
      metadata: create(ResourceMetadataSchema, { name }),
      ...(spec === undefined ? {} : { spec, specDigest: specDigest(spec, digest) }),
      state: HarnessState.ACTIVE,
      source: HarnessSource.STATIC,
    });
  }
  const { name, uid, version, spec, specDigest: registeredDigest, createTimeMs, updateTimeMs, retired } = known.row;
  const [createTime, updateTime] = [timestampFromMs(createTimeMs), timestampFromMs(updateTimeMs)];
  return create(HarnessRegistrationSchema, {
    metadata: create(ResourceMetadataSchema, { name, uid, version: BigInt(version), createTime, updateTime }),
    spec,
    specDigest: registeredDigest,
    state: retired === undefined ? HarnessState.ACTIVE : HarnessState.RETIRED,
    source: HarnessSource.REGISTERED,
    ...(retired === undefined ? {} : { retireTime: timestampFromMs(retired.timeMs), retireReason: retired.reason }),
    unservableReason: unservableReason(spec),
  });
}

/** Asks harnesses what they are, now. */
class Observer {
  readonly #clock: Ports["clock"];
  readonly #limits: RegistryLimits;
  #asking = 0;

  constructor(clock: Ports["clock"], limits: RegistryLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Puts into the registration what the harness says, or why it did not. Rejects only when the caller gave up or too many ask. */
  async observe(registration: HarnessRegistration, entry: HarnessEntry | undefined, caller: CallContext["signal"]): Promise<void> {
    if (entry === undefined) {
      registration.observeError = "harness: this host does not have it";
      return;
    }
    if (this.#asking >= this.#limits.observationsMax) {
      throw new HoldfastError("resource_exhausted", "observe: too many harnesses are being asked; try again later", { field: "observe" });
    }
    this.#asking++;
    try {
      const descriptor = await this.#askInTime(entry, caller);
      registration.observed = descriptor;
      registration.unservableReason ||= registration.spec === undefined ? "" : strangerReason(registration.spec, descriptor);
      registration.unservableReason ||= misplacedReason(descriptor, entry);
    } catch (error) {
      caller.throwIfAborted();
      registration.observeError = toHoldfastError(error).message;
    } finally {
      this.#asking--;
    }
  }

  async #askInTime(entry: HarnessEntry, caller: CallContext["signal"]): Promise<HarnessDescriptor> {
    const { observeTimeoutMs, descriptorBytesMax } = this.#limits;
    const late = new AbortController();
    const timer = this.#clock.after(observeTimeoutMs, () =>
      late.abort(new HoldfastError("deadline_exceeded", `harness: it did not say what it is within ${observeTimeoutMs} ms`)),
    );
    const signal = AbortSignal.any([caller, late.signal]);
    try {
      // A harness that does not listen to the signal is left to itself; whoever asks it disposes of it when it comes round.
      const descriptor = await untilAborted(ask(entry, signal), signal);
      if (toBinary(HarnessDescriptorSchema, descriptor).length <= descriptorBytesMax) return descriptor;
      throw new HoldfastError("resource_exhausted", `harness: its descriptor must have at most ${descriptorBytesMax} bytes`);
    } finally {
      timer.cancel();
    }
  }
}

async function ask(entry: HarnessEntry, signal: CallContext["signal"]): Promise<HarnessDescriptor> {
  await using rehearsed = await entry.rehearse({ signal });
  return create(HarnessDescriptorSchema, await rehearsed.harness.describe({ signal }));
}

function misplacedReason(descriptor: HarnessDescriptor, { runtime }: HarnessEntry): string {
  const placement = canPlace(descriptor, runtime);
  return placement.kind === "placed" ? "" : placement.reason;
}
