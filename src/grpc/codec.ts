/** Between messages and the bytes that grpc-js sends, without a copy where none is needed. */

import { fromBinary, toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";

/** A message, or its encoding that was made before (a record as the journal holds it). */
export type Encodable<Desc extends DescMessage> = MessageShape<Desc> | Uint8Array;

/** `bytes` as the Buffer that grpc-js insists on, over the same memory. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** A serializer for `desc`. Bytes that are ready pass through as they are. */
export function serializerOf<Desc extends DescMessage>(desc: Desc): (value: Encodable<Desc>) => Buffer {
  return (value) => asBuffer(value instanceof Uint8Array ? value : toBinary(desc, value));
}

/** A deserializer for `desc`. It throws for bytes that are not such a message. */
export function deserializerOf<Desc extends DescMessage>(desc: Desc): (bytes: Uint8Array) => MessageShape<Desc> {
  return (bytes) => fromBinary(desc, bytes);
}
