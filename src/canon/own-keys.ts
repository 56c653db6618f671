/** Sets a key that its sender chose. Assigning to `__proto__` would set the prototype; the key is legal in maps and Structs. */
export function setOwn<Value>(object: Record<string, Value>, key: string, value: Value): void {
  if (key !== "__proto__") object[key] = value;
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}
