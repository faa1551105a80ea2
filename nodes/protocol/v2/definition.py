"""The messages that requests and answers of `apache.rocketmq.v2` are made of."""

from collections.abc import Mapping

from nodes.protocol.model import NO_TEXTS
from nodes.protocol.v2.enums import (
    AddressScheme,
    ClientType,
    Code,
    DigestType,
    Encoding,
    FilterType,
    Language,
    MessageType,
    Permission,
)
from nodes.values import frozen


@frozen
class Status:
    """The result of a call, or of a part of it."""

    code: Code = Code.CODE_UNSPECIFIED
    message: str = ""


@frozen
class Resource:
    """The name of a topic or a group; a proxy ignores its namespace."""

    name: str = ""
    resource_namespace: str = ""


@frozen
class FilterExpression:
    """An expression that chooses messages."""

    type: FilterType = FilterType.FILTER_TYPE_UNSPECIFIED
    expression: str = ""


@frozen
class SubscriptionEntry:
    """The subscription of a topic."""

    topic: Resource = Resource()
    expression: FilterExpression = FilterExpression()


@frozen
class Address:
    """A host and a port."""

    host: str = ""
    port: int = 0


@frozen(cache_hash=True)
class Endpoints:
    """The addresses of proxies."""

    scheme: AddressScheme = AddressScheme.ADDRESS_SCHEME_UNSPECIFIED
    addresses: tuple[Address, ...] = ()


@frozen
class Broker:
    """A broker, with the proxies by which clients reach it."""

    name: str = ""
    id: int = 0
    endpoints: Endpoints = Endpoints()


@frozen
class MessageQueue:
    """A queue in a route, or, with id -1, all queues of a broker in an assignment."""

    topic: Resource = Resource()
    id: int = 0
    permission: Permission = Permission.PERMISSION_UNSPECIFIED
    broker: Broker = Broker()
    accept_message_types: tuple[MessageType, ...] = ()


@frozen
class Digest:
    """The digest of a body."""

    type: DigestType = DigestType.DIGEST_TYPE_UNSPECIFIED
    checksum: str = ""


@frozen
class DeadLetterQueue:
    """Where a dead letter comes from."""

    topic: str = ""
    message_id: str = ""


@frozen
class SystemProperties:
    """What RocketMQ knows about a message."""

    tag: str | None = None
    keys: tuple[str, ...] = ()
    message_id: str = ""
    body_digest: Digest | None = None
    body_encoding: Encoding = Encoding.ENCODING_UNSPECIFIED
    message_type: MessageType = MessageType.MESSAGE_TYPE_UNSPECIFIED
    born_timestamp_ms: int = 0
    born_host: str = ""
    store_timestamp_ms: int | None = None
    store_host: str = ""
    delivery_timestamp_ms: int | None = None
    receipt_handle: str | None = None
    queue_id: int = 0
    queue_offset: int | None = None
    invisible_duration_ms: int | None = None
    delivery_attempt: int | None = None
    message_group: str | None = None
    trace_context: str | None = None
    orphaned_transaction_recovery_duration_ms: int | None = None
    dead_letter_queue: DeadLetterQueue | None = None


@frozen
class Message:
    """A message."""

    topic: Resource = Resource()
    user_properties: Mapping[str, str] = NO_TEXTS
    system_properties: SystemProperties = SystemProperties()
    body: bytes = b""


@frozen
class ExponentialBackoff:
    """Delays that grow by a factor."""

    initial_ms: int = 0
    max_ms: int = 0
    multiplier: float = 0.0


@frozen
class CustomizedBackoff:
    """Delays one by one; the last one repeats."""

    next_ms: tuple[int, ...] = ()


@frozen
class RetryPolicy:
    """How often something is tried, and when."""

    max_attempts: int = 0
    exponential_backoff: ExponentialBackoff | None = None
    customized_backoff: CustomizedBackoff | None = None


@frozen
class UA:
    """The client's program."""

    language: Language = Language.LANGUAGE_UNSPECIFIED
    version: str = ""
    platform: str = ""
    hostname: str = ""


@frozen
class Publishing:
    """The part of a producer's settings that consumers lack."""

    topics: tuple[Resource, ...] = ()
    max_body_size: int = 0
    validate_message_type: bool = False


@frozen
class Subscription:
    """The part of a consumer's settings that producers lack."""

    group: Resource | None = None
    subscriptions: tuple[SubscriptionEntry, ...] = ()
    fifo: bool | None = None
    receive_batch_size: int | None = None
    long_polling_timeout_ms: int | None = None


@frozen
class Metric:
    """Whether a client exports metrics, and where to."""

    on: bool = False
    endpoints: Endpoints | None = None


@frozen
class Settings:
    """What a client and its proxy agree on; exactly one of `publishing` and `subscription` belongs there."""

    client_type: ClientType | None = None
    access_point: Endpoints | None = None
    backoff_policy: RetryPolicy | None = None
    request_timeout_ms: int | None = None
    publishing: Publishing | None = None
    subscription: Subscription | None = None
    user_agent: UA | None = None
    metric: Metric | None = None


@frozen
class Assignment:
    """A queue, or a broker, that a consumer receives from."""

    message_queue: MessageQueue = MessageQueue()
