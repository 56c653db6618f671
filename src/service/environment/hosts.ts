/** The host that a client chose of its environment's: which harness drives it, which tools are there and what it looks at. Pure. */

import { invalidArgument } from "../../base/errors.ts";
import { isGlobOf } from "../../controller/index.ts";
import type { Environment, EnvironmentHost, ObservationSource } from "../../spi/index.ts";

/** Where turns of an environment run. */
export interface ResolvedHost {
  /** "" where none was chosen. */
  readonly hostId: string;
  readonly harness: string;
  /** The tools of the environment that are there; `*` stands for any characters. */
  readonly tools: readonly string[];
  /** Absent where there is nothing to look at. */
  readonly observation?: ObservationSource | undefined;
}

/**
 * The host that `asked` names: by its id, or by labels as `key=value`, several with commas between. Of several hosts with these labels it is
 * the first by id that has one of its tools among `hostTools`, the tools that this server can reach now, or, where none has, the first. ""
 * is the environment itself. Throws INVALID_ARGUMENT that names `host_id` where no host is meant.
 */
export function resolveHost(environment: Environment, asked: string, hostTools: readonly string[] = []): ResolvedHost {
  if (asked === "") return placeOf(environment, "", { labels: {} });
  const { hosts } = environment;
  const byId = Object.hasOwn(hosts, asked) ? hosts[asked] : undefined;
  if (byId !== undefined) return placeOf(environment, asked, byId);
  const wanted = labelsIn(asked);
  const labelled = wanted === undefined ? [] : idsOf(hosts).filter(([, host]) => hasLabels(host, wanted));
  const [id, host] = labelled.find(([, candidate]) => isConnected(candidate, hostTools)) ?? labelled[0] ?? [];
  if (id === undefined || host === undefined) throw invalidArgument("host_id", unknownHost(hosts));
  return placeOf(environment, id, host);
}

function placeOf(environment: Environment, hostId: string, host: EnvironmentHost): ResolvedHost {
  return {
    hostId,
    harness: host.harness ?? environment.harness,
    tools: host.tools ?? ["*"],
    observation: host.observation ?? environment.observation,
  };
}

function idsOf(hosts: Environment["hosts"]): readonly (readonly [string, EnvironmentHost])[] {
  return Object.entries(hosts).toSorted(([one], [other]) => (one < other ? -1 : 1));
}

/** `key=value,key=value`; undefined for what has not that form. */
function labelsIn(asked: string): readonly (readonly [string, string])[] | undefined {
  const pairs = asked.split(",").map((pair): [string, string] | undefined => {
    const at = pair.indexOf("=");
    return at < 1 ? undefined : [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
  });
  const whole = pairs.filter((pair) => pair !== undefined);
  return whole.length === pairs.length ? whole : undefined;
}

function hasLabels({ labels }: EnvironmentHost, wanted: readonly (readonly [string, string])[]): boolean {
  return wanted.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

/** A host without tools of its own is wherever its harness is. */
function isConnected({ tools }: EnvironmentHost, hostTools: readonly string[]): boolean {
  return tools === undefined || hostTools.some((name) => tools.some((pattern) => isGlobOf(pattern, name)));
}

const IDS_MAX = 20;

function unknownHost(hosts: Environment["hosts"]): string {
  const ids = idsOf(hosts).map(([id]) => id);
  if (ids.length === 0) return "must be empty: the environment has no hosts";
  const more = ids.length - IDS_MAX;
  const named = [...ids.slice(0, IDS_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
  return `must be a host of the environment, or labels of one as key=value; it has: ${named}`;
}
