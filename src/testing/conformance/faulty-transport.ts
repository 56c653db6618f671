/** A transport that breaks promises on purpose, so that it can be shown which case catches what. */

import { fromBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import type { CallOptions, Method, Transport } from "../../client/index.ts";
import type { LogRecord } from "../../gen/agentsessions/v1/common_pb.ts";
import type {
  ApproveRequest,
  ApproveResponse,
  CancelRequest,
  CreateSessionRequest,
  DeleteSessionRequest,
  ExecRequest,
  ExecUpdate,
  ForkRequest,
  ForkResponse,
  GetSessionRequest,
  ListSessionsRequest,
  ListSessionsResponse,
  ReplayRequest,
  ResumeRequest,
  Session,
  SuspendRequest,
} from "../../gen/agentsessions/v1/session_pb.ts";
import type { ListApprovalsRequest, ListApprovalsResponse } from "../../gen/holdfast/v1/calls_pb.ts";
import type { TailRequest, TailUpdate, VerifyRequest, VerifyResponse } from "../../gen/holdfast/v1/journal_pb.ts";
import type { LineageRequest, LineageResponse } from "../../gen/holdfast/v1/lineage_pb.ts";
import type { CheckReplayRequest, TurnCheck } from "../../gen/holdfast/v1/replay_pb.ts";

/** A call with one answer, which a fault may change or make itself. */
export type Unary<Request, Answer> = (request: Request, real: (request: Request) => Promise<Answer>) => Promise<Answer>;
/** A streamed call, likewise. */
export type Streamed<Request, Item> = (request: Request, real: (request: Request) => AsyncIterable<Item>) => AsyncIterable<Item>;

/** What is done otherwise, by the method's name. */
export interface Fault {
  readonly CreateSession?: Unary<CreateSessionRequest, Session>;
  readonly GetSession?: Unary<GetSessionRequest, Session>;
  readonly ListSessions?: Unary<ListSessionsRequest, ListSessionsResponse>;
  readonly DeleteSession?: Unary<DeleteSessionRequest, Session>;
  readonly Cancel?: Unary<CancelRequest, Session>;
  readonly Suspend?: Unary<SuspendRequest, Session>;
  readonly Approve?: Unary<ApproveRequest, ApproveResponse>;
  readonly ListApprovals?: Unary<ListApprovalsRequest, ListApprovalsResponse>;
  readonly Resume?: Unary<ResumeRequest, Session>;
  readonly Fork?: Unary<ForkRequest, ForkResponse>;
  readonly Exec?: Streamed<ExecRequest, ExecUpdate>;
  readonly Replay?: Streamed<ReplayRequest, LogRecord>;
  readonly Tail?: Streamed<TailRequest, TailUpdate>;
  readonly Verify?: Unary<VerifyRequest, VerifyResponse>;
  readonly CheckReplay?: Streamed<CheckReplayRequest, TurnCheck>;
  readonly Lineage?: Unary<LineageRequest, LineageResponse>;
  /** Every error, whatever the call. */
  readonly error?: (error: HoldfastError, request: object) => HoldfastError;
}

/** `inner` with a fault. `encode` makes the bytes of a changed record, for readers of bytes. */
export function faultyTransport(inner: Transport, fault: Fault, encode: (desc: DescMessage, message: object) => Uint8Array): Transport {
  const told = (error: unknown, request: object): unknown =>
    error instanceof HoldfastError && fault.error !== undefined ? fault.error(error, request) : error;
  const transport: Transport = {
    ports: inner.ports,
    async unary<Input extends DescMessage, Output extends DescMessage>(
      method: Method<Input, Output>,
      request: MessageShape<Input>,
      options?: CallOptions,
    ): Promise<MessageShape<Output>> {
      const changed = Reflect.get(fault, method.name) as Unary<MessageShape<Input>, MessageShape<Output>> | undefined;
      const real = (asked: MessageShape<Input>): Promise<MessageShape<Output>> => inner.unary(method, asked, options);
      try {
        return await (changed === undefined ? real(request) : changed(request, real));
      } catch (error) {
        throw told(error, request);
      }
    },
    async *stream<Input extends DescMessage, Output extends DescMessage>(
      method: Method<Input, Output>,
      request: MessageShape<Input>,
      options?: CallOptions,
    ): AsyncGenerator<MessageShape<Output>, void, undefined> {
      const changed = Reflect.get(fault, method.name) as Streamed<MessageShape<Input>, MessageShape<Output>> | undefined;
      const real = (asked: MessageShape<Input>): AsyncIterable<MessageShape<Output>> => inner.stream(method, asked, options);
      try {
        yield* changed === undefined ? real(request) : changed(request, real);
      } catch (error) {
        throw told(error, request);
      }
    },
    async *streamBytes<Input extends DescMessage>(
      method: Method<Input, DescMessage>,
      request: MessageShape<Input>,
      options?: CallOptions,
    ): AsyncGenerator<Uint8Array, void, undefined> {
      const changed = Reflect.get(fault, method.name) as Streamed<MessageShape<Input>, object> | undefined;
      const real = async function* (asked: MessageShape<Input>): AsyncGenerator<object, void, undefined> {
        for await (const bytes of inner.streamBytes(method, asked, options)) yield fromBinary(method.output, bytes);
      };
      try {
        if (changed === undefined) yield* inner.streamBytes(method, request, options);
        else for await (const item of changed(request, real)) yield encode(method.output, item);
      } catch (error) {
        throw told(error, request);
      }
    },
    upload: (method, requests, options) => inner.upload(method, requests, options),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
  return transport;
}
