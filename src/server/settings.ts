/**
 * The one table of a server's settings: where each comes from, what it is when nobody says, and what it means. The parser, `--help`
 * and `docs/configuration.md` are all made from it.
 *
 * Secrets come from the environment or from a file that it names, never from an argument, which every process can read.
 */

/** One setting. */
export interface Setting {
  /** The flag without its dashes; absent for what may not stand in an argument. */
  readonly flag?: string | undefined;
  /** What the flag takes, for `--help`. */
  readonly takes?: string | undefined;
  /** The environment variable. A flag goes before it. */
  readonly env: string;
  /** As one would write it; absent where the default is "none". */
  readonly default?: string | undefined;
  /** What it means. */
  readonly what: string;
}

/** Every setting of a server. */
export const SETTINGS = {
  listen: {
    flag: "listen",
    takes: "host:port",
    env: "HOLDFAST_LISTEN",
    default: "127.0.0.1:8080",
    what: "the address of the one port for gRPC and HTTP; port 0 lets the system choose; anything but loopback needs a token",
  },
  data: {
    flag: "data",
    takes: "folder",
    env: "HOLDFAST_DATA",
    default: "./.holdfast",
    what: "the folder of the journal; it is made where it is missing, and one server at a time has it",
  },
  store: {
    flag: "store",
    takes: "sqlite|memory",
    env: "HOLDFAST_STORE",
    default: "sqlite",
    what: "where the journal is kept; memory forgets everything at the end and needs no folder",
  },
  harness: {
    flag: "harness",
    takes: "name",
    env: "HOLDFAST_HARNESS",
    default: "echo",
    what: "the harness of sessions whose creator names none: echo or chat",
  },
  model: {
    flag: "model",
    takes: "id",
    env: "HOLDFAST_MODEL",
    default: "echo",
    what: "the model of sessions whose creator names none",
  },
  recover: {
    flag: "recover",
    takes: "leave|resume",
    env: "HOLDFAST_RECOVER",
    default: "leave",
    what: "what a start does with turns that an earlier one left open: leave them for Resume, or resume those that did not fail",
  },
  retention: {
    flag: "retention",
    takes: "duration|forever",
    env: "HOLDFAST_RETENTION",
    default: "30d",
    what: "how long a deleted session can still be read before its storage is reclaimed: 90s, 12h, 30d; 0 is at once, forever never",
  },
  tlsCert: {
    flag: "tls-cert",
    takes: "file",
    env: "HOLDFAST_TLS_CERT",
    what: "the certificate chain in PEM; with it and the key the port speaks TLS only",
  },
  tlsKey: { flag: "tls-key", takes: "file", env: "HOLDFAST_TLS_KEY", what: "the certificate's private key in PEM" },
  shutdownGrace: {
    flag: "shutdown-grace",
    takes: "seconds",
    env: "HOLDFAST_SHUTDOWN_GRACE",
    default: "30",
    what: "how long running turns may go on after SIGTERM or Ctrl-C; what runs longer is interrupted and can be resumed",
  },
  logLevel: {
    flag: "log-level",
    takes: "debug|info|warn|error",
    env: "HOLDFAST_LOG_LEVEL",
    default: "info",
    what: "the least severe lines of the log, which goes to standard error as JSON lines",
  },
  token: {
    env: "HOLDFAST_TOKEN",
    what: "the bearer token that every call must carry; without one everybody who reaches the port may use it",
  },
  tokenFile: { env: "HOLDFAST_TOKEN_FILE", what: "a file with the bearer token, read once at the start; HOLDFAST_TOKEN goes before it" },
  signingKeyFile: {
    env: "HOLDFAST_SIGNING_KEY_FILE",
    what: "a file with an Ed25519 private key in PEM (holdfast keygen makes one), which signs the heads of exported sessions",
  },
  openaiApiKey: { env: "OPENAI_API_KEY", what: "the key for OpenAI-compatible models; a server on this machine may need none" },
  openaiBaseUrl: {
    env: "OPENAI_BASE_URL",
    what: "the address of an OpenAI-compatible API; with it or a key, every model that no other provider serves is asked for there",
  },
  anthropicApiKey: { env: "ANTHROPIC_API_KEY", what: "the key for Anthropic's models, which claude-* and anthropic/* are asked from" },
  anthropicBaseUrl: { env: "ANTHROPIC_BASE_URL", what: "the address of the Anthropic API, where it is not the vendor's own" },
} as const satisfies Readonly<Record<string, Setting>>;

/** The name of a setting. */
export type SettingName = keyof typeof SETTINGS;
