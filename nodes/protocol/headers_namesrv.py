"""What everybody else asks a nameserver: routes, permissions, topics, configuration.

The rules of `nodes.protocol.headers` hold.
"""

import attrs

from nodes.protocol.wire_names import wire


@attrs.frozen
class GetRouteInfoRequestHeader:
    """Header of GET_ROUTEINFO_BY_TOPIC (105)."""

    topic: str
    accept_standard_json_only: bool | None = None
    zone_name: str | None = attrs.field(default=None, metadata=wire("__ZONE_NAME"))
    zone_mode: bool | None = attrs.field(default=None, metadata=wire("__ZONE_MODE"))


@attrs.frozen
class WritePermRequestHeader:
    """Header of WIPE_WRITE_PERM_OF_BROKER (205) and ADD_WRITE_PERM_OF_BROKER (327)."""

    broker_name: str


@attrs.frozen
class WipeWritePermResponseHeader:
    """How many topics lost the WRITE bit."""

    wipe_topic_count: int


@attrs.frozen
class AddWritePermResponseHeader:
    """How many topics were made readable and writeable."""

    add_topic_count: int


@attrs.frozen
class DeleteTopicFromNamesrvRequestHeader:
    """Header of DELETE_TOPIC_IN_NAMESRV (216)."""

    topic: str
    cluster_name: str | None = None


@attrs.frozen
class RegisterTopicRequestHeader:
    """Header of REGISTER_TOPIC_IN_NAMESRV (217)."""

    topic: str


@attrs.frozen
class PutKvConfigRequestHeader:
    """Header of PUT_KV_CONFIG (100)."""

    namespace: str | None = None
    key: str | None = None
    value: str | None = None


@attrs.frozen
class KvConfigRequestHeader:
    """Which entry of the configuration: the header of 101 and of 102.

    Mirrors:
        `GetKVConfigRequestHeader`, `DeleteKVConfigRequestHeader`.
    """

    namespace: str
    key: str


@attrs.frozen
class GetKvConfigResponseHeader:
    """The value of an entry."""

    value: str | None = None


@attrs.frozen
class GetKvListByNamespaceRequestHeader:
    """Header of GET_KVLIST_BY_NAMESPACE (219)."""

    namespace: str


@attrs.frozen
class GetTopicsByClusterRequestHeader:
    """Header of GET_TOPICS_BY_CLUSTER (224)."""

    cluster: str
