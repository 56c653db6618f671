/** Environments as messages of the API. */

import { create, toJson, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type EnvironmentHostSchema,
  EnvironmentSchema,
  EnvironmentSource,
  type Environment as EnvironmentMessage,
} from "../../gen/holdfast/v1/environments_pb.ts";
import type { Environment, EnvironmentHost } from "../../spi/index.ts";
import type { KnownEnvironment } from "./library.ts";

/** The whole of an environment, defaults included. */
export function environmentMessage({ environment, row }: KnownEnvironment): EnvironmentMessage {
  const { observation, agent, permissions, tools, hosts, maxContextTokens, ...rest } = environment;
  return create(EnvironmentSchema, {
    ...rest,
    ...(row === undefined ? { source: EnvironmentSource.CONFIGURED } : { ...metadataOf(row), source: EnvironmentSource.CREATED }),
    ...(Object.keys(agent).length === 0 ? {} : { agent: structOf(agent) }),
    ...(observation === undefined ? {} : { observation }),
    permissions: permissions.map(({ tool, policy, category = "", reason = "" }) => ({ tool, policy, category, reason })),
    tools: { pure: [...tools.pure], physical: [...tools.physical] },
    hosts: Object.fromEntries(Object.entries(hosts).map(([id, host]) => [id, hostMessage(host)])),
    maxContextTokens: maxContextTokens ?? 0,
  });
}

function hostMessage({ harness = "", tools = [], observation, labels }: EnvironmentHost): MessageInitShape<typeof EnvironmentHostSchema> {
  return { harness, tools: [...tools], labels, ...(observation === undefined ? {} : { observation }) };
}

function metadataOf({ uid, version, createTimeMs, updateTimeMs }: NonNullable<KnownEnvironment["row"]>) {
  return { uid, version: BigInt(version), createTime: timestampFromMs(createTimeMs), updateTime: timestampFromMs(updateTimeMs) };
}

/** An agent's definition was read from JSON, and is no more than that. */
function structOf(agent: Environment["agent"]): JsonObject {
  return JSON.parse(JSON.stringify(agent)) as JsonObject;
}

/** What the API only tells, and what names the environment. */
const NOT_DEFINED: readonly string[] = ["id", "source", "uid", "version", "create_time", "update_time"];

/** The definition in a message, with the protocol's own keys. */
export function definitionIn(message: EnvironmentMessage): Readonly<Record<string, unknown>> {
  const json = toJson(EnvironmentSchema, message, { useProtoFieldName: true });
  return Object.fromEntries(Object.entries(json ?? {}).filter(([key]) => !NOT_DEFINED.includes(key)));
}
