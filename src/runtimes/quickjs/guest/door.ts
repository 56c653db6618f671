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

/** What the parts of the prelude share. */
export interface Door {
  /** Sends one word and its text to the host. */
  readonly post: (word: DoorWord, text: string) => void;
  /** Who hears which kind of message. */
  readonly on: { [Kind in DoorMessage["kind"]]?: (message: Extract<DoorMessage, { readonly kind: Kind }>) => void };
  readonly codec: DoorCodec;
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
  const isTag = (names: readonly string[]): boolean => {
    return names.length === 1 && (names[0] === "$n" || names[0] === "$b" || names[0] === "$o");
  };
  const tagged = (value: unknown): unknown => {
    if (typeof value === "bigint") return { $n: `${value}` };
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
      if (names[0] === "$n") return toBigInt(inner as string);
      return names[0] === "$b" ? fromBase64(inner as string) : resolved(inner, true);
    }
    for (const name of names) from[name] = resolved(from[name], false);
    return from;
  };
  return { toBase64, fromBase64, tagged, resolved: (value) => resolved(value, false) };
}

/** Opens the door. `hostPost` is the host's one function. */
export function openDoor(global: GuestGlobal, hostPost: (word: DoorWord, text: string) => void, codec: DoorCodec): Door {
  const { parse, stringify } = JSON;
  const { defineProperty } = Object;
  const { tagged, resolved } = codec;
  const NewPromise = Promise;
  const TooLarge = RangeError;

  // A sender waits while as much is under way as may be; the host counts it too.
  let most = { frames: 0, chars: 0, frameChars: 0 };
  let sent = { frames: 0, chars: 0 };
  const waiting: { readonly chars: number; readonly go: () => void }[] = [];
  const isRoomFor = (chars: number): boolean => sent.frames === 0 || (sent.frames < most.frames && sent.chars + chars <= most.chars);
  const count = (chars: number): void => {
    sent.frames++;
    sent.chars += chars;
  };
  const wake = (): void => {
    while (waiting.length > 0 && isRoomFor(waiting[0]!.chars)) {
      const { chars, go } = waiting.shift()!;
      count(chars);
      go();
    }
  };
  const shown = {
    receive: undefined as ((frame: unknown) => void) | undefined,
    /** Sends a frame of the harness wire: a plain object. Throws a RangeError at once, and sends nothing, for one that is too large. */
    send: (frame: unknown): Promise<void> => {
      const text = stringify(tagged(frame));
      if (text.length > most.frameChars) throw new TooLarge(`a frame may have at most ${most.frameChars} characters as JSON`);
      if (waiting.length === 0 && isRoomFor(text.length)) {
        count(text.length);
        hostPost("frame", text);
        return NewPromise.resolve();
      }
      return new NewPromise<void>((resolve) => {
        waiting.push({
          chars: text.length,
          go: () => {
            hostPost("frame", text);
            resolve();
          },
        });
      });
    },
  };
  const door: Door = { post: hostPost, on: {}, codec };
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
