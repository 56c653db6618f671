/** A small SQLite file of a store's own, in the data folder beside the journal: opened durably, brought up to date, its faults told. */

export { ownFileFault, told } from "./faults.ts";
export { openOwnFile, type OwnFile } from "./open.ts";
