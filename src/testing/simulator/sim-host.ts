/** One simulated host: a controller with a clock, a road to the store, a model and harnesses of its own. */

import { hostIdOf, SILENT_LOG, type Clock, type Digest, type HostId } from "../../base/index.ts";
import { createController, type Controller, type ControllerLimits } from "../../controller/index.ts";
import type { JournalStore } from "../../journal/index.ts";
import { createSpawnTool } from "../../service/index.ts";
import { joinTools, type Harness } from "../../spi/index.ts";
import { harnessCatalog } from "../host.ts";
import {
  CountedModel,
  CountedTools,
  observedHarnesses,
  type JournalMonitor,
  type Ledger,
  type ModelScript,
  type ToolScript,
} from "../invariants.ts";
import type { Dice } from "../dice.ts";
import { HostLife } from "./host-life.ts";
import { JournalView, type Fates } from "./journal-view.ts";

/** What a host is made of. */
export interface SimHostOptions {
  readonly name: string;
  /** The store, as the observer shows it to this host. */
  readonly journal: JournalStore;
  readonly ledger: Ledger;
  readonly monitor: JournalMonitor;
  readonly fates: Fates;
  readonly dice: Dice;
  readonly clock: Clock;
  readonly digest: Digest;
  readonly limits: Partial<ControllerLimits>;
  readonly script: (clock: Clock) => ModelScript;
  readonly toolScript: (clock: Clock) => ToolScript;
  readonly harnesses: (clock: Clock) => Readonly<Record<string, Harness>>;
  /** The version of its harnesses. */
  readonly version: string;
  /** The harnesses that its sessions may spawn; none where it spawns nothing. */
  readonly agents: readonly string[];
}

/** A host. */
export class SimHost {
  readonly name: string;
  readonly id: HostId;
  readonly version: string;
  readonly life: HostLife;
  readonly road: JournalView;
  /** The store at the end of its road. */
  readonly store: JournalStore;
  readonly controller: Controller;
  /** Settles when it has looked for workers that an earlier host left behind. */
  readonly looked: Promise<void>;
  /** It was told to shut down. */
  isClosing = false;

  constructor(options: SimHostOptions) {
    const { name, ledger, monitor, digest, dice } = options;
    this.name = name;
    this.id = hostIdOf(name);
    this.version = options.version;
    this.life = new HostLife(options.clock);
    this.road = new JournalView(options.journal, this.life, options.fates);
    this.store = this.road.store();
    const { clock } = this.life;
    const alive = async (): Promise<void> => {
      await this.life.alive();
      if (this.life.stalledMs > 0) await clock.sleep(this.life.stalledMs);
    };
    const harnesses = observedHarnesses({ harnesses: harnessCatalog(options.harnesses(clock)), ledger, monitor, digest, host: name });
    const ports = { clock, random: dice, digest };
    const counted = new CountedTools({ ledger, monitor, alive, script: options.toolScript(clock) });
    const { agents } = options;
    const spawn = agents.length === 0 ? undefined : createSpawnTool({ agents, journal: this.store, harnesses, ports, log: SILENT_LOG });
    this.controller = createController({
      journal: this.store,
      harnesses,
      models: new CountedModel({ ledger, monitor, digest, alive, script: options.script(clock) }),
      tools: spawn === undefined ? counted : joinTools(spawn, counted),
      ports,
      log: SILENT_LOG,
      hostId: this.id,
      limits: options.limits,
    });
    this.looked = spawn?.start(this.controller) ?? Promise.resolve();
  }

  /** Takes calls. */
  get isUp(): boolean {
    return !this.life.isDead && !this.isClosing;
  }
}
