/** The schema that a server serves, as reflection tells it: files by name and by symbol, each with everything that it imports. */

import { toBinary, type DescFile, type DescMessage, type DescService } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** The files of a set of services. */
export class ServedFiles {
  /** The full names of the services, sorted. */
  readonly services: readonly string[];
  readonly #byName = new Map<string, DescFile>();
  readonly #bySymbol = new Map<string, DescFile>();
  readonly #messages = new Set<string>();
  readonly #encoded = new Map<DescFile, Uint8Array>();

  constructor(services: readonly DescService[]) {
    this.services = services.map((service) => service.typeName).toSorted();
    for (const service of services) this.#add(service.file);
  }

  /** The file and its imports, encoded; undefined when no such file is served. */
  byName(name: string): readonly Uint8Array[] | undefined {
    return this.#closure(this.#byName.get(name));
  }

  /** The file that declares a message, an enum, a service or a method, and its imports. */
  bySymbol(symbol: string): readonly Uint8Array[] | undefined {
    return this.#closure(this.#bySymbol.get(symbol));
  }

  /** Whether a message of this name is served. */
  hasMessage(typeName: string): boolean {
    return this.#messages.has(typeName);
  }

  #add(file: DescFile): void {
    if (this.#byName.has(file.proto.name)) return;
    this.#byName.set(file.proto.name, file);
    for (const message of file.messages) this.#addMessage(message, file);
    for (const type of file.enums) this.#bySymbol.set(type.typeName, file);
    for (const service of file.services) {
      this.#bySymbol.set(service.typeName, file);
      for (const method of service.methods) this.#bySymbol.set(`${service.typeName}.${method.name}`, file);
    }
    for (const imported of file.dependencies) this.#add(imported);
  }

  #addMessage(message: DescMessage, file: DescFile): void {
    this.#bySymbol.set(message.typeName, file);
    this.#messages.add(message.typeName);
    for (const field of message.fields) this.#bySymbol.set(`${message.typeName}.${field.name}`, file);
    for (const inner of message.nestedMessages) this.#addMessage(inner, file);
    for (const inner of message.nestedEnums) this.#bySymbol.set(inner.typeName, file);
  }

  #closure(file: DescFile | undefined): readonly Uint8Array[] | undefined {
    if (file === undefined) return undefined;
    const files = new Set([file]);
    for (const each of files) each.dependencies.forEach((imported) => files.add(imported));
    return [...files].map((each) => this.#encode(each));
  }

  #encode(file: DescFile): Uint8Array {
    let bytes = this.#encoded.get(file);
    if (bytes === undefined) {
      bytes = toBinary(FileDescriptorProtoSchema, file.proto);
      this.#encoded.set(file, bytes);
    }
    return bytes;
  }
}
