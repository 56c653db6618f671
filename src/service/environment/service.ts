/** The Environments service. */

import { create, toBinary } from "@bufbuild/protobuf";
import { invalidArgument } from "../../base/errors.ts";
import type { Digest } from "../../base/ports.ts";
import {
  EnvironmentSchema,
  ListEnvironmentsResponseSchema,
  type Environment as EnvironmentMessage,
  type ListEnvironmentsRequest,
  type ListEnvironmentsResponse,
} from "../../gen/holdfast/v1/environments_pb.ts";
import type { Action, Authorizer, Environment } from "../../spi/index.ts";
import { authorize } from "../access.ts";
import type { CallContext, EnvironmentsService } from "../contract.ts";
import { SERVICE_LIMITS, type ServiceLimits } from "../limits.ts";
import { pageSizeOf } from "../list-request.ts";
import { openPageToken, sealPageToken, unreadableToken } from "../page-token.ts";
import { environmentId } from "./id.ts";
import type { EnvironmentLibrary } from "./library.ts";
import { definitionIn, environmentMessage } from "./message.ts";

/** What the service is made of. */
export interface EnvironmentsServiceOptions {
  readonly library: EnvironmentLibrary;
  /**
   * The environment of a definition, given with the protocol's own keys. Throws INVALID_ARGUMENT that names the field below `environment`,
   * for what this host does not have too.
   */
  readonly read: (id: string, definition: Readonly<Record<string, unknown>>) => Environment;
  readonly authorizer: Authorizer;
  readonly digest: Digest;
  readonly limits?: Partial<ServiceLimits> | undefined;
}

/** Creates the handlers of `holdfast.v1.Environments`. */
export function createEnvironmentsService(options: EnvironmentsServiceOptions): EnvironmentsService {
  const { library, digest } = options;
  const limits = { ...SERVICE_LIMITS, ...options.limits };
  const may = (action: Action, context: CallContext): Promise<void> => authorize(options.authorizer, action, { project: "" }, context);
  const read = (message: EnvironmentMessage | undefined): Environment => {
    if (message === undefined) throw invalidArgument("environment", "must be there");
    return options.read(environmentId(message.id, "environment.id"), definitionIn(message));
  };
  return {
    async listEnvironments(request, context) {
      const page = { limit: pageSizeOf(request.pageSize, limits, "environments"), after: afterIn(request, digest) };
      await may("environment.read", context);
      return pageOf(library, { ...page, bytesSoftMax: limits.pageBytesSoftMax }, digest);
    },

    async getEnvironment({ id }, context) {
      await may("environment.read", context);
      return environmentMessage(library.known(environmentId(id, "id")));
    },

    async createEnvironment({ environment }, context) {
      await may("environment.write", context);
      return environmentMessage(await library.create(read(environment)));
    },

    async updateEnvironment({ environment, expectedVersion }, context) {
      await may("environment.write", context);
      const version = versionOf(expectedVersion);
      if (version === undefined) throw invalidArgument("expected_version", "must be the version that was read");
      const uid = environment?.uid === "" ? undefined : environment?.uid;
      return environmentMessage(await library.update(read(environment), { version, uid }));
    },

    async deleteEnvironment({ id, expectedVersion }, context) {
      await may("environment.write", context);
      return environmentMessage(await library.remove(environmentId(id, "id"), { version: versionOf(expectedVersion) }));
    },
  };
}

/** Undefined for 0, which is any. */
function versionOf(version: bigint): number | undefined {
  if (version < 0n || version > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw invalidArgument("expected_version", "must be a version that was read");
  }
  return version === 0n ? undefined : Number(version);
}

/** Sets these tokens apart from those of other lists. */
const TOKEN_KIND = "environment";

function afterIn({ pageToken }: ListEnvironmentsRequest, digest: Digest): string | undefined {
  if (pageToken === "") return undefined;
  const [kind, id, ...rest] = openPageToken(pageToken, digest);
  if (kind !== TOKEN_KIND || typeof id !== "string" || rest.length > 0) throw unreadableToken();
  return id;
}

interface AskedPage {
  readonly limit: number;
  readonly after: string | undefined;
  readonly bytesSoftMax: number;
}

function pageOf(library: EnvironmentLibrary, { limit, after, bytesSoftMax }: AskedPage, digest: Digest): ListEnvironmentsResponse {
  const environments: EnvironmentMessage[] = [];
  let bytes = 0;
  for (const known of library.after(after)) {
    const last = environments.at(-1);
    const next = environmentMessage(known);
    bytes += toBinary(EnvironmentSchema, next).length;
    if (last !== undefined && (environments.length === limit || bytes > bytesSoftMax)) {
      return create(ListEnvironmentsResponseSchema, { environments, nextPageToken: sealPageToken([TOKEN_KIND, last.id], digest) });
    }
    environments.push(next);
  }
  return create(ListEnvironmentsResponseSchema, { environments });
}
