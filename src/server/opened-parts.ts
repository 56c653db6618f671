/** What a server has opened so far, to be closed again where the rest cannot be had. */
export class OpenedParts implements AsyncDisposable {
  readonly #parts: AsyncDisposable[] = [];

  /** Takes a part that was opened, and gives it back. */
  add<Part extends AsyncDisposable>(part: Part): Part {
    this.#parts.push(part);
    return part;
  }

  /** Closes the parts, the last one first: each may need those before it. One that fails keeps no other open; the first error is thrown. */
  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (let part = this.#parts.pop(); part !== undefined; part = this.#parts.pop()) {
      try {
        await part[Symbol.asyncDispose]();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
