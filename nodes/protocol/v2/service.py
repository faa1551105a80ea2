"""Requests and answers of `apache.rocketmq.v2.MessagingService`.

An answer to ReceiveMessage is a stream of one status, messages and an instant; here it is one value.
"""

from nodes.protocol.body_codec import SharedBody
from nodes.protocol.v2.definition import (
    Assignment,
    Endpoints,
    FilterExpression,
    Message,
    MessageQueue,
    Resource,
    Settings,
    Status,
)
from nodes.protocol.v2.enums import ClientType, TransactionResolution, TransactionSource
from nodes.values import frozen


@frozen
class QueryRouteRequest:
    """Asks for the queues of a topic."""

    topic: Resource = Resource()
    endpoints: Endpoints = Endpoints()


@frozen
class QueryRouteResponse:
    """The queues of a topic, once per replica of their broker."""

    status: Status = Status()
    message_queues: tuple[MessageQueue, ...] = ()


@frozen
class SendMessageRequest:
    """Messages of one topic."""

    messages: tuple[Message, ...] = ()


@frozen
class SendResultEntry:
    """How a message was stored."""

    status: Status = Status()
    message_id: str = ""
    transaction_id: str = ""
    offset: int = 0
    recall_handle: str = ""


@frozen
class SendMessageResponse:
    """How messages were stored; several sent at once have one entry."""

    status: Status = Status()
    entries: tuple[SendResultEntry, ...] = ()


@frozen
class QueryAssignmentRequest:
    """Asks what a consumer of a group may receive of a topic."""

    topic: Resource = Resource()
    group: Resource = Resource()
    endpoints: Endpoints = Endpoints()


@frozen
class QueryAssignmentResponse:
    """The assignments, the same for all consumers."""

    status: Status = Status()
    assignments: tuple[Assignment, ...] = ()


@frozen
class ReceiveMessageRequest:
    """Asks for messages of a broker."""

    group: Resource = Resource()
    message_queue: MessageQueue = MessageQueue()
    filter_expression: FilterExpression = FilterExpression()
    batch_size: int = 0
    invisible_duration_ms: int | None = None
    auto_renew: bool = False
    long_polling_timeout_ms: int | None = None
    attempt_id: str | None = None


@frozen
class ReceiveMessageResponse:
    """The whole answer: its status, its messages, and when the proxy had written them."""

    status: Status = Status()
    messages: tuple[Message, ...] = ()
    delivery_timestamp_ms: int | None = None


@frozen
class AckMessageEntry:
    """A message, and its receipt handle."""

    message_id: str = ""
    receipt_handle: str = ""


@frozen
class AckMessageRequest:
    """Acknowledges messages."""

    group: Resource = Resource()
    topic: Resource = Resource()
    entries: tuple[AckMessageEntry, ...] = ()


@frozen
class AckMessageResultEntry:
    """Whether a message was acknowledged."""

    message_id: str = ""
    receipt_handle: str = ""
    status: Status = Status()


@frozen
class AckMessageResponse:
    """Which messages were acknowledged."""

    status: Status = Status()
    entries: tuple[AckMessageResultEntry, ...] = ()


@frozen
class ForwardMessageToDeadLetterQueueRequest:
    """Gives a message up."""

    group: Resource = Resource()
    topic: Resource = Resource()
    receipt_handle: str = ""
    message_id: str = ""
    delivery_attempt: int = 0
    max_delivery_attempts: int = 0


@frozen
class ForwardMessageToDeadLetterQueueResponse:
    """Whether the dead letter was stored."""

    status: Status = Status()


@frozen
class HeartbeatRequest:
    """A client is alive; its proxy knows the rest from its settings."""

    group: Resource | None = None
    client_type: ClientType = ClientType.CLIENT_TYPE_UNSPECIFIED


@frozen
class HeartbeatResponse:
    """Whether the proxy knows the client."""

    status: Status = Status()


@frozen
class EndTransactionRequest:
    """Commits a transaction, or rolls it back."""

    topic: Resource = Resource()
    message_id: str = ""
    transaction_id: str = ""
    resolution: TransactionResolution = TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED
    source: TransactionSource = TransactionSource.SOURCE_UNSPECIFIED
    trace_context: str = ""


@frozen
class EndTransactionResponse:
    """Whether the proxy knew the transaction; not whether the broker heard of its end."""

    status: Status = Status()


@frozen
class NotifyClientTerminationRequest:
    """A client ends."""

    group: Resource | None = None


@frozen
class NotifyClientTerminationResponse:
    """Whether the proxy knew the client."""

    status: Status = Status()


@frozen
class ChangeInvisibleDurationRequest:
    """Hides a message for a time from now on."""

    group: Resource = Resource()
    topic: Resource = Resource()
    receipt_handle: str = ""
    invisible_duration_ms: int = 0
    message_id: str = ""


@frozen
class ChangeInvisibleDurationResponse:
    """The new handle of the message."""

    status: Status = Status()
    receipt_handle: str = ""


@frozen
class RecallMessageRequest:
    """Takes a timed message back."""

    topic: Resource = Resource()
    recall_handle: str = ""


@frozen
class RecallMessageResponse:
    """The id of the message."""

    status: Status = Status()
    message_id: str = ""


@frozen
class ThreadStackTrace:
    """What threads of a client do."""

    nonce: str = ""
    thread_stack_trace: str | None = None


@frozen
class VerifyMessageResult:
    """A client has consumed a message for an operator."""

    nonce: str = ""


@frozen
class RecoverOrphanedTransactionCommand:
    """A check: a producer is to end this transaction."""

    message: Message = Message()
    transaction_id: str = ""


@frozen
class PrintThreadStackTraceCommand:
    """Asks what threads of a client do."""

    nonce: str = ""


@frozen
class VerifyMessageCommand:
    """Has a client consume a message for an operator."""

    nonce: str = ""
    message: Message = Message()


@frozen
class TelemetryCommand:
    """A message of the stream between a client and its proxy; one field next to the status is set."""

    status: Status | None = None
    settings: Settings | None = None
    thread_stack_trace: ThreadStackTrace | None = None
    verify_message_result: VerifyMessageResult | None = None
    recover_orphaned_transaction_command: RecoverOrphanedTransactionCommand | None = None
    print_thread_stack_trace_command: PrintThreadStackTraceCommand | None = None
    verify_message_command: VerifyMessageCommand | None = None


_SHORT_BYTES_MAX = 1024 * 1024
_SHORT = (AckMessageRequest, AckMessageResponse, ReceiveMessageRequest, SendMessageResponse)


def encode_message(value: object) -> bytes:
    """A request or an answer as the body of a frame, for `decode_body`; no one may change it afterwards.

    Bytes are made of it where a carrier wants bytes, and where it may be too long for a frame.
    """
    match value:
        case SendMessageRequest() | ReceiveMessageResponse():
            is_short = sum([len(message.body) for message in value.messages]) <= _SHORT_BYTES_MAX
        case _:
            is_short = value.__class__ in _SHORT
    return SharedBody(value, is_short=is_short)  # type: ignore[return-value]
