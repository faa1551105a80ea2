"""Headers of calls to a proxy, in place of the metadata and the trailers of gRPC.

The rules of `nodes.protocol.headers` hold. Times are milliseconds.
"""

from nodes.values import frozen


@frozen
class CallMetadataHeader:
    """What gRPC carries with each call of a RocketMQ 5 client.

    Mirrors:
        `org.apache.rocketmq.common.constant.GrpcConstants`.
    """

    client_id: str | None = None
    """`x-mq-client-id`."""
    language: str | None = None
    """`x-mq-language`: the name of a `Language`."""
    client_version: str | None = None
    """`x-mq-client-version`."""
    remaining_ms: int | None = None
    """Until the deadline of the call; None: it has none."""
    authorization: str | None = None
    date_time: str | None = None
    """`x-mq-date-time`, which is what a client signs."""
    namespace: str | None = None
    """`x-mq-namespace`; a proxy ignores it."""
    authorization_ak: str | None = None
    """`x-mq-authorization-ak`: the user, which a proxy writes there itself, unless the client has."""


@frozen
class GrpcErrorHeader:
    """Of an answer with GRPC_ERROR; its remark is the description of the status."""

    grpc_status: int
    """The number of the status: 3 INVALID_ARGUMENT, 12 UNIMPLEMENTED, 13 INTERNAL."""
