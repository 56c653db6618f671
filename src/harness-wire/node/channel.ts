/** The channel options of both ends: sizes, and a connection that went silent is noticed. */

import type { ChannelOptions } from "@grpc/grpc-js";

const KEEPALIVE: ChannelOptions = {
  "grpc.keepalive_time_ms": 20_000,
  "grpc.keepalive_timeout_ms": 5_000,
};

/** Options of a client's channel to a peer that may be on this machine. */
export function clientChannel(receiveBytesMax: number, options: { readonly local: boolean }): ChannelOptions {
  return {
    ...KEEPALIVE,
    "grpc.max_receive_message_length": receiveBytesMax,
    // A channel of its own: closing one line closes its connection and no other.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.service_config_disable_resolution": 1,
    "grpc.initial_reconnect_backoff_ms": 50,
    "grpc.max_reconnect_backoff_ms": 1_000,
    ...(options.local ? { "grpc.enable_http_proxy": 0 } : {}),
  };
}

/** Options of a server. */
export function serverChannel(receiveBytesMax: number): ChannelOptions {
  return { ...KEEPALIVE, "grpc.max_receive_message_length": receiveBytesMax };
}
