/**
 * Guest code: the door between a harness and its host. It is sent into the VM as its own source text, so it refers to nothing but its
 * parameters and the guest's globals, and it takes what it uses of them before the harness's code can change them.
 *
 * A harness sees `holdfastDoor`: `send(frame)` resolves when the next may be sent, and what `receive` is set to is called with each frame of
 * the host. Everything passes `__recv(text)` on the way in and the host's one function on the way out.
 */

/** What the host says to the door. */
export type DoorMessage =
  | { readonly kind: "frame"; readonly frame: unknown }
  | { readonly kind: "turn"; readonly seed: readonly number[] }
  | { readonly kind: "timer"; readonly id: number }
  /** The host has taken this much of what was sent. */
  | { readonly kind: "taken"; readonly frames: number; readonly chars: number }
  /** Said first after the boot and after every restore: so much may be under way, and nothing is. */
  | { readonly kind: "open"; readonly frames: number; readonly chars: number; readonly frameChars: number };

/** What the door asks of the host: the first word of what it posts. */
export type DoorWord = "frame" | "timer" | "clear" | "console";

/** The host's one function. True where it refused a frame that is none of the wire's. */
export type HostPost = (word: DoorWord, text: string) => boolean | undefined;

/** What the parts of the prelude share. */
export interface Door {
  /** Sends one word and its text to the host. */
  readonly post: HostPost;
  /** Who hears which kind of message. */
  readonly on: { [Kind in DoorMessage["kind"]]?: (message: Extract<DoorMessage, { readonly kind: Kind }>) => void };
  readonly codec: DoorCodec;
  /** Prints what a task of the guest threw: its loop goes on. */
  readonly uncaught: (thrown: unknown) => void;
}

/** How values pass as text. */
export interface DoorCodec {
  readonly toBase64: (bytes: Uint8Array) => string;
  readonly fromBase64: (text: string) => Uint8Array;
  readonly tagged: (value: unknown) => unknown;
  readonly resolved: (value: unknown) => unknown;
}

/** The globals of a guest, as this code sees them. */
export type GuestGlobal = { [name: string]: unknown };

/** Bytes as base64, and frames as JSON with the tags that `door-json.ts` tells of. */
export function makeCodec(): DoorCodec {
  const { defineProperty, keys } = Object;
  const { isArray } = Array;
  const Bytes = Uint8Array;
  const toBigInt = BigInt;
  const toNumber = Number;
  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const VALUES = new Bytes(128);
  for (let digit = 0; digit < 64; digit++) VALUES[DIGITS.charCodeAt(digit)] = digit;

  const toBase64 = (bytes: Uint8Array): string => {
    let text = "";
    for (let index = 0; index < bytes.length; index += 3) {
      const bits = (bytes[index]! << 16) | ((bytes[index + 1] ?? 0) << 8) | (bytes[index + 2] ?? 0);
      text += DIGITS[bits >> 18]! + DIGITS[(bits >> 12) & 63]!;
      text += (index + 1 < bytes.length ? DIGITS[(bits >> 6) & 63]! : "=") + (index + 2 < bytes.length ? DIGITS[bits & 63]! : "=");
    }
    return text;
  };
  const fromBase64 = (text: string): Uint8Array => {
    let { length } = text;
    while (length > 0 && text[length - 1] === "=") length--;
    const bytes = new Bytes((length * 3) >> 2);
    let bits = 0;
    let count = 0;
    let at = 0;
    for (let index = 0; index < length; index++) {
      bits = ((bits << 6) | VALUES[text.charCodeAt(index)]!) & 0xfffff;
      count += 6;
      if (count >= 8) {
        count -= 8;
        bytes[at++] = (bits >> count) & 255;
      }
    }
    return bytes;
  };

  // A key is a key, also `__proto__`.
  const set = (object: { [key: string]: unknown }, name: string, value: unknown): void => {
    if (name === "__proto__") defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
    else object[name] = value;
  };
  const isInteger = (text: string): boolean => text !== "-0" && text[text.length - 1]! <= "9";
  // JSON has no word for the others.
  const isPlainNumber = (value: number): boolean => value - value === 0 && (value !== 0 || 1 / value > 0);
  const isTag = (names: readonly string[]): boolean => {
    return names.length === 1 && (names[0] === "$n" || names[0] === "$b" || names[0] === "$o");
  };
  const tagged = (value: unknown): unknown => {
    if (typeof value === "bigint") return { $n: `${value}` };
    if (typeof value === "number") return isPlainNumber(value) ? value : { $n: value === 0 ? "-0" : `${value}` };
    if (value === null || typeof value !== "object") return value;
    if (value instanceof Bytes) return { $b: toBase64(value) };
    if (isArray(value)) return value.map(tagged);
    const from = value as { readonly [key: string]: unknown };
    const names = keys(from);
    const object: { [key: string]: unknown } = {};
    for (const name of names) set(object, name, tagged(from[name]));
    return isTag(names) ? { $o: object } : object;
  };
  const resolved = (value: unknown, isPlain: boolean): unknown => {
    if (value === null || typeof value !== "object") return value;
    if (isArray(value)) return value.map((item) => resolved(item, false));
    const from = value as { [key: string]: unknown };
    const names = keys(from);
    if (!isPlain && isTag(names)) {
      const inner = from[names[0]!];
      if (names[0] === "$n") return isInteger(inner as string) ? toBigInt(inner as string) : toNumber(inner);
      return names[0] === "$b" ? fromBase64(inner as string) : resolved(inner, true);
    }
    for (const name of names) from[name] = resolved(from[name], false);
    return from;
  };
  return { toBase64, fromBase64, tagged, resolved: (value) => resolved(value, false) };
}

/** Opens the door. `hostPost` is the host's one function. */
export function openDoor(global: GuestGlobal, hostPost: HostPost, codec: DoorCodec): Door {
  const { parse, stringify } = JSON;
  const { defineProperty } = Object;
  const { tagged, resolved } = codec;
  const NewPromise = Promise;
  const TooLarge = RangeError;
  const NoFrame = TypeError;
  const Thrown = Error;
  const asText = String;

  // A sender waits while as much is under way as may be; the host counts it too.
  let most = { frames: 0, chars: 0, frameChars: 0 };
  let sent = { frames: 0, chars: 0 };
  const waiting: { readonly chars: number; readonly go: () => void }[] = [];
  const isRoomFor = (chars: number): boolean => sent.frames === 0 || (sent.frames < most.frames && sent.chars + chars <= most.chars);
  const post = (frame: string): void => {
    if (hostPost("frame", frame) === true) throw new NoFrame("this is no frame of the harness wire");
    sent.frames++;
    sent.chars += frame.length;
  };
  const wake = (): void => {
    while (waiting.length > 0 && isRoomFor(waiting[0]!.chars)) {
      waiting.shift()!.go();
    }
  };
  const shown = {
    receive: undefined as ((frame: unknown) => void) | undefined,
    /**
     * Sends a frame of the harness wire: a plain object. Throws at once, and sends nothing, for one that is too large (RangeError) or that is
     * no frame (TypeError); it rejects where others wait before it.
     */
    send: (frame: unknown): Promise<void> => {
      const text = stringify(tagged(frame));
      if (text.length > most.frameChars) throw new TooLarge(`a frame may have at most ${most.frameChars} characters as JSON`);
      if (waiting.length === 0 && isRoomFor(text.length)) {
        post(text);
        return NewPromise.resolve();
      }
      return new NewPromise<void>((resolve, reject) => {
        waiting.push({
          chars: text.length,
          go: () => {
            try {
              post(text);
              resolve();
            } catch (error) {
              reject(error);
            }
          },
        });
      });
    },
  };
  const uncaught = (thrown: unknown): void => {
    let words = "something that cannot be printed";
    try {
      words = thrown instanceof Thrown ? `${thrown}\n${thrown.stack ?? ""}` : asText(thrown);
    } catch {
      // What is thrown may throw when it is read.
    }
    hostPost("console", `Uncaught ${words}`);
  };
  const door: Door = { post: hostPost, on: {}, codec, uncaught };
  door.on.frame = ({ frame }) => shown.receive?.(resolved(frame));
  door.on.taken = ({ frames, chars }) => {
    sent = { frames: sent.frames - frames, chars: sent.chars - chars };
    wake();
  };
  door.on.open = ({ frames, chars, frameChars }) => {
    most = { frames, chars, frameChars };
    sent = { frames: 0, chars: 0 };
    wake();
  };
  defineProperty(global, "holdfastDoor", { value: shown });
  defineProperty(global, "__recv", {
    value: (text: string): void => {
      const message = parse(text) as DoorMessage;
      door.on[message.kind]?.(message as never);
    },
  });
  return door;
}
