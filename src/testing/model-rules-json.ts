/** JSON as the rules of `model-rules.ts` look at it. */

export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isFilled(value: unknown): boolean {
  return (typeof value === "string" || Array.isArray(value)) && value.length > 0;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export function loneSurrogateIn(value: unknown, at: string): string | undefined {
  if (typeof value === "string") return value.isWellFormed() ? undefined : at;
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const found = key.isWellFormed() ? loneSurrogateIn(inner, `${at}.${key}`) : at;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether text is base64 of at least one byte. */
export function isBase64(text: unknown): boolean {
  return typeof text === "string" && text !== "" && /^[A-Za-z0-9+/_-]+={0,2}$/.test(text);
}
