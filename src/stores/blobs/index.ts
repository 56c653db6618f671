/** Where blobs live: files under a folder, or memory. */

export { openFileBlobStore, type FileBlobStoreOptions } from "./file-blob-store.ts";
export * from "./memory-blob-store.ts";
export * from "./session-blobs.ts";
