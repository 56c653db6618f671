/** Where blobs live: files under a folder, or memory. */

export * from "./file-blob-store.ts";
export * from "./memory-blob-store.ts";
