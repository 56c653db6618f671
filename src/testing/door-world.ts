/** A journal, notes and environments, and any number of hosts over them with an interactive door: for tests of conversations. */

import { ALLOW_ALL, ClientDoor, plainEnvironment, type AgentLimits, type AgentService } from "../service/index.ts";
import { SILENT_LOG, type Log, type SessionUid } from "../base/index.ts";
import { replaySession } from "../controller/index.ts";
import type { JournalStore } from "../journal/index.ts";
import type { Authorizer, Environment, Harness, ModelCatalog, NoteStore, ToolExecutor } from "../spi/index.ts";
import { DoorClient, type DoorClientOptions } from "./door-client.ts";
import { harnessCatalog, TestHost, TestModel, type TestHostOptions } from "./host.ts";
import type { seededPorts } from "./ports.ts";

type SeededPorts = ReturnType<typeof seededPorts>;

export interface DoorWorldOptions {
  readonly ports: SeededPorts;
  readonly journal: JournalStore;
  readonly notes: NoteStore;
  /** By name; `agent` and `history` are those of the sessions. */
  readonly harnesses: Readonly<Record<string, Harness>>;
  readonly models?: ModelCatalog | undefined;
  readonly environments?: readonly Environment[] | undefined;
  readonly compile?: ConstructorParameters<typeof ClientDoor>[0]["compile"] | undefined;
  readonly tools?: ToolExecutor | undefined;
  readonly limits?: Partial<AgentLimits> | undefined;
  readonly authorizer?: Authorizer | undefined;
  readonly log?: Log | undefined;
  /** Default: `test`. */
  readonly model?: string | undefined;
}

/** A host with an interactive door. */
export class DoorHost implements AsyncDisposable {
  readonly host: TestHost;
  readonly service: Pick<AgentService, "streamSession">;
  /** What the host's turns have in common with its streams. */
  readonly door: ClientDoor;
  readonly #clients: DoorClient[] = [];

  constructor(host: TestHost, service: Pick<AgentService, "streamSession">, door: ClientDoor) {
    this.host = host;
    this.service = service;
    this.door = door;
  }

  /** Opens a stream. */
  client(options: DoorClientOptions = {}): DoorClient {
    const client = new DoorClient(this.service, options);
    this.#clients.push(client);
    return client;
  }

  /** Cuts every stream and interrupts what runs. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.cut()));
    await this.host[Symbol.asyncDispose]();
  }
}

export class DoorWorld {
  readonly ports: SeededPorts;
  readonly journal: JournalStore;
  readonly notes: NoteStore;
  readonly #options: DoorWorldOptions;
  #hosts = 0;

  constructor(options: DoorWorldOptions) {
    this.ports = options.ports;
    this.journal = options.journal;
    this.notes = options.notes;
    this.#options = options;
  }

  /** A new host over what there is. */
  host(more: Partial<TestHostOptions> = {}): DoorHost {
    const { ports, notes } = this;
    const { harnesses, models = new TestModel(), tools, limits, log = SILENT_LOG, authorizer = ALLOW_ALL } = this.#options;
    const { compile = () => () => undefined, environments = [plainEnvironment()], model = "test" } = this.#options;
    const journal = more.journal ?? this.journal;
    const door = new ClientDoor({ clock: ports.clock, compile, tools, limits });
    this.#hosts += 1;
    const hostId = `host-${this.#hosts}`;
    const host = new TestHost({ journal, ports, harnesses, models, tools, log, hostId, turnTools: door.turnTools, ...more });
    const service = door.service({
      journal,
      controller: host.controller,
      harnesses: harnessCatalog(harnesses),
      models,
      environments: {
        find: (id) => environments.find((environment) => environment.id === (id === "" ? "default" : id)),
        list: () => environments,
      },
      notes,
      authorizer,
      ports,
      log,
      defaults: { harness: "agent", model },
    });
    return new DoorHost(host, service, door);
  }

  /** How each ended turn of a session replays: `same`, or why not. */
  async checks(session: string): Promise<string[]> {
    const row = await this.journal.get(session as SessionUid);
    if (row === undefined) throw new Error("no such session");
    const { journal, ports } = this;
    const context = { journal, ports, harnesses: harnessCatalog(this.#options.harnesses) };
    const checks = await Array.fromAsync(replaySession(context, { row }));
    return checks.map(({ outcome }) => (outcome.kind === "diverged" ? `diverged: ${outcome.divergence.reason}` : outcome.kind));
  }
}
