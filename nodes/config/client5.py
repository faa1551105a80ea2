"""The options of clients of RocketMQ 5, which speak with a proxy."""

import attrs

from nodes.config.options import Config, count, millis, name_options
from nodes.fields import flag, text
from nodes.secret import Secret, secret


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class Client5Config(Config):
    """Options of each client.

    Mirrors:
        `org.apache.rocketmq.client.apis.ClientConfiguration`.
    """

    request_timeout: int = millis(3_000, minimum=1)
    """Of a call; receiving messages takes the time of the poll in addition."""
    renews_stream: bool = flag(default=True)
    """Report the settings again a second after their stream has broken, as Java's client does. Go's client up to 5.1.2
    waits for the next round, for up to five minutes (upstream 1137)."""
    access_key: str = text("", empty=True)
    """Access key of an account, for proxies with `authenticationEnabled`; empty: calls are not signed."""
    secret_key: Secret = secret()
    """Secret key of the account, with which all calls are signed; needed with `access_key`. As that of an account it is
    never written or printed, and may be `{ env = "NAME" }` or `{ file = "PATH" }`."""
    tries_all_endpoints: bool = flag(default=True)
    """Connect to the next proxy of the access point when one does not answer, as Java's client does. Go's client does
    not (upstream 818)."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class Producer5Config(Client5Config):
    """Options of a producer.

    Mirrors:
        `org.apache.rocketmq.client.apis.producer.ProducerBuilder`.
    """

    max_attempts: int = count(3, minimum=1)
    """Attempts of a send; the settings of the proxy come before it."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class Consumer5Config(Client5Config):
    """Options of a consumer."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class PushConsumer5Config(Consumer5Config):
    """Options of a push consumer.

    Mirrors:
        `org.apache.rocketmq.client.apis.consumer.PushConsumerBuilder`.
    """

    max_cache_message_count: int = count(4_096, minimum=1)
    """Messages that wait for the listener, over all its brokers; above it a broker is not asked for a second."""
    consumption_thread_count: int = count(20, minimum=1, maximum=1_000)
    """Messages that the listener works on at a time."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class SimpleConsumer5Config(Consumer5Config):
    """Options of a simple consumer, and of its application, which receives, works and acknowledges in turn.

    Mirrors:
        `org.apache.rocketmq.client.apis.consumer.SimpleConsumer`.
    """

    await_duration: int = millis(30_000, minimum=1)
    """How long a receive waits for messages."""
    invisible_duration: int = millis(30_000, minimum=1)
    """How long messages are hidden from other consumers."""
    max_message_num: int = count(16, minimum=1, maximum=1_024)
    """Most messages of a receive."""
