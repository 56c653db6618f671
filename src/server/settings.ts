/**
 * The one table of a server's settings: where each comes from, what it is when nobody says, and what it means. The parser, `--help`
 * and `docs/configuration.md` are all made from it.
 *
 * Secrets come from the environment or from a file that it names: never from an argument, which every process can read, and never from
 * the config file, which is kept with the source.
 */

/** One setting. */
export interface Setting {
  /** The flag without its dashes; absent for what may not stand in an argument. */
  readonly flag?: string | undefined;
  /** What the flag takes, for `--help`. */
  readonly takes?: string | undefined;
  /** The environment variable. A flag goes before it, and it before the config file. */
  readonly env: string;
  /** Its key in the config file, with a dot before a key within an object; absent for what may not stand there. */
  readonly file?: string | undefined;
  /** `text` unless it is said: in the config file a number is one of JSON, and a path is relative to the file's folder. */
  readonly form?: "number" | "path" | undefined;
  /** As one would write it; absent where the default is "none". */
  readonly default?: string | undefined;
  /** What it means. */
  readonly what: string;
}

/** Every setting of a server. */
export const SETTINGS = {
  config: {
    flag: "config",
    takes: "file",
    env: "HOLDFAST_CONFIG",
    what: "a file of JSON with these settings by their keys, and with harnesses, models and tools",
  },
  listen: {
    flag: "listen",
    takes: "host:port",
    env: "HOLDFAST_LISTEN",
    file: "listen",
    default: "127.0.0.1:8080",
    what: "the address of the one port for gRPC and HTTP; port 0 lets the system choose; anything but loopback needs a token",
  },
  data: {
    flag: "data",
    takes: "folder",
    env: "HOLDFAST_DATA",
    file: "data",
    form: "path",
    default: "./.holdfast",
    what: "the folder of the journal; it is made where it is missing, and one server at a time has it",
  },
  store: {
    flag: "store",
    takes: "sqlite|memory",
    env: "HOLDFAST_STORE",
    file: "store",
    default: "sqlite",
    what: "where the journal is kept; memory forgets everything at the end and needs no folder",
  },
  harness: {
    flag: "harness",
    takes: "name",
    env: "HOLDFAST_HARNESS",
    file: "harness",
    default: "echo",
    what: "the harness of sessions whose creator names none: echo, chat, agent, or one of the config file or the registry",
  },
  model: {
    flag: "model",
    takes: "id",
    env: "HOLDFAST_MODEL",
    file: "model",
    default: "echo",
    what: "the model of sessions whose creator names none; script:file plays a script of YAML or JSON",
  },
  recover: {
    flag: "recover",
    takes: "leave|resume",
    env: "HOLDFAST_RECOVER",
    file: "recover",
    default: "leave",
    what: "what a start does with turns that an earlier one left open: leave them for Resume, or resume those that did not fail",
  },
  retention: {
    flag: "retention",
    takes: "duration|forever",
    env: "HOLDFAST_RETENTION",
    file: "retention",
    default: "30d",
    what: "how long a deleted session can still be read before its storage is reclaimed: 90s, 12h, 30d; 0 is at once, forever never",
  },
  tlsCert: {
    flag: "tls-cert",
    takes: "file",
    env: "HOLDFAST_TLS_CERT",
    file: "tlsCert",
    form: "path",
    what: "the certificate chain in PEM; with it and the key the port speaks TLS only",
  },
  tlsKey: {
    flag: "tls-key",
    takes: "file",
    env: "HOLDFAST_TLS_KEY",
    file: "tlsKey",
    form: "path",
    what: "the certificate's private key in PEM",
  },
  shutdownGrace: {
    flag: "shutdown-grace",
    takes: "seconds",
    env: "HOLDFAST_SHUTDOWN_GRACE",
    file: "shutdownGrace",
    form: "number",
    default: "30",
    what: "how long running turns may go on after SIGTERM or Ctrl-C; what runs longer, or waits for a client that is gone, is interrupted and can be resumed",
  },
  logLevel: {
    flag: "log-level",
    takes: "debug|info|warn|error",
    env: "HOLDFAST_LOG_LEVEL",
    file: "logLevel",
    default: "info",
    what: "the least severe lines of the log, which goes to standard error as JSON lines",
  },
  token: {
    env: "HOLDFAST_TOKEN",
    what: "the bearer token that every call must carry; without one everybody who reaches the port may use it",
  },
  tokenFile: {
    env: "HOLDFAST_TOKEN_FILE",
    file: "tokenFile",
    form: "path",
    what: "a file with the bearer token, read once at the start; HOLDFAST_TOKEN goes before it",
  },
  signingKeyFile: {
    env: "HOLDFAST_SIGNING_KEY_FILE",
    file: "signingKeyFile",
    form: "path",
    what: "a file with an Ed25519 private key in PEM (holdfast keygen makes one), which signs the heads of exported sessions",
  },
  openaiApiKey: { env: "OPENAI_API_KEY", what: "the key for OpenAI-compatible models; a server on this machine may need none" },
  openaiBaseUrl: {
    env: "OPENAI_BASE_URL",
    file: "openaiBaseUrl",
    what: "the address of an OpenAI-compatible API; with it or a key, every model that no other provider serves is asked for there",
  },
  openaiApi: {
    env: "HOLDFAST_OPENAI_API",
    file: "openaiApi",
    what: "the API of OpenAI's that is spoken, responses or chat; where nobody says, responses at OpenAI's own address and chat at any other",
  },
  anthropicApiKey: { env: "ANTHROPIC_API_KEY", what: "the key for Anthropic's models, which claude-* and anthropic/* are asked from" },
  anthropicBaseUrl: {
    env: "ANTHROPIC_BASE_URL",
    file: "anthropicBaseUrl",
    what: "the address of the Anthropic API, where it is not the vendor's own",
  },
  googleApiKey: { env: "GEMINI_API_KEY", what: "the key for Google's models, which gemini-* and google/* are asked from" },
  googleBaseUrl: {
    env: "GOOGLE_GEMINI_BASE_URL",
    file: "googleBaseUrl",
    what: "the address of the Gemini API, where it is not the vendor's own",
  },
  registryListen: {
    flag: "registry-listen",
    takes: "host:port|off",
    env: "HOLDFAST_REGISTRY_LISTEN",
    file: "registry.listen",
    what: "the operator's port, where harnesses are registered; without it the port after listen's, on 127.0.0.1; off for none",
  },
  operatorToken: {
    env: "HOLDFAST_OPERATOR_TOKEN",
    what: "the bearer token that every call of the operator's port must carry; it must not be the token of sessions",
  },
  operatorTokenFile: {
    env: "HOLDFAST_OPERATOR_TOKEN_FILE",
    file: "registry.tokenFile",
    form: "path",
    what: "a file with the operator's token, read once at the start; HOLDFAST_OPERATOR_TOKEN goes before it",
  },
  pauseAfterIdle: {
    env: "HOLDFAST_PAUSE_AFTER_IDLE_MS",
    file: "pauseAfterIdleMs",
    form: "number",
    what: "after how many milliseconds without a turn a session's sandbox is paused and kept warm; never where it is not given",
  },
  suspendAfterIdle: {
    env: "HOLDFAST_SUSPEND_AFTER_IDLE_MS",
    file: "suspendAfterIdleMs",
    form: "number",
    what: "after how many milliseconds without a turn a session's sandbox is suspended and its compute freed; never where it is not given",
  },
  mintKeyFile: {
    env: "HOLDFAST_MINT_KEY_FILE",
    file: "tokens.keyFile",
    form: "path",
    what: "a file with an Ed25519 private key in PEM (PKCS#8) that signs the tokens which harnesses mint; without one they mint none",
  },
  mintIssuer: {
    env: "HOLDFAST_MINT_ISSUER",
    file: "tokens.issuer",
    what: "the issuer in minted tokens: a URL or a name by which verifiers know this host; it goes with the key",
  },
  mintLifetime: {
    env: "HOLDFAST_MINT_LIFETIME_SECONDS",
    file: "tokens.lifetimeSeconds",
    form: "number",
    default: "300",
    what: "how many seconds a minted token is good for, 1 to 3600",
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** The name of a setting. */
export type SettingName = keyof typeof SETTINGS;
