"""Headers of requests of operators and their tools to brokers.

The rules of `nodes.protocol.headers` hold.
"""

from typing import ClassVar

import attrs

from nodes.protocol.errors import RefusedHeaderError
from nodes.protocol.model import FILTER_TYPES
from nodes.protocol.widths import Int32
from nodes.protocol.wire_names import wire
from nodes.values import frozen


@frozen
class CreateTopicRequestHeader:
    """Header of UPDATE_AND_CREATE_TOPIC (17)."""

    NULLS_FAIL: ClassVar[bool] = True

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    topic_sys_flag: Int32 | None = None
    order: bool = False
    attributes: str | None = None
    """`+key=value,-key`: see `nodes.broker.tables.metadata.attributes`."""
    force: bool | None = None

    def check_fields(self) -> None:
        """Refuse a filter type that RocketMQ does not have.

        Raises:
            RefusedHeaderError: it is another one.
        """
        if self.topic_filter_type not in FILTER_TYPES:
            raise RefusedHeaderError(f"topicFilterType = [{self.topic_filter_type or 'null'}] value invalid")


@frozen
class ResetMasterFlushOffsetHeader:
    """Header of RESET_MASTER_FLUSH_OFFSET (908)."""

    master_flush_offset: int


@frozen
class TopicHeader:
    """A topic: the header of 202, 215, 300 and 351.

    Mirrors:
        `GetTopicStatsInfoRequestHeader`, `DeleteTopicRequestHeader`, `QueryTopicConsumeByWhoRequestHeader`,
        `GetTopicConfigRequestHeader`.
    """

    topic: str
    lo: bool | None = None
    """True, of 351: the mapping of a static topic is wanted, too."""


@frozen
class GroupHeader:
    """A consumer group: the header of 343 and 352.

    Mirrors:
        `QueryTopicsByConsumerRequestHeader`, `GetSubscriptionGroupConfigRequestHeader`.
    """

    group: str


@frozen
class GroupAndTopicHeader:
    """A consumer group and a topic: the header of 303 and 345.

    Mirrors:
        `QueryConsumeTimeSpanRequestHeader`, `QuerySubscriptionByConsumerRequestHeader`.
    """

    group: str
    topic: str


@frozen
class DeleteSubscriptionGroupRequestHeader:
    """Header of DELETE_SUBSCRIPTIONGROUP (207)."""

    group_name: str
    clean_offset: bool = False


@frozen
class UpdateGroupForbiddenRequestHeader:
    """Header of UPDATE_AND_GET_GROUP_FORBIDDEN (353)."""

    group: str
    topic: str
    readable: bool | None = None
    """None: only query."""


@frozen
class GetConsumeStatsRequestHeader:
    """Header of GET_CONSUME_STATS (208)."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None
    """Separated by semicolons; regardless of subscriptions."""


@frozen
class ProducerGroupHeader:
    """Header of GET_PRODUCER_CONNECTION_LIST (204)."""

    producer_group: str


@frozen
class GetConsumeStatsInBrokerHeader:
    """Header of GET_BROKER_CONSUME_STATS (317)."""

    is_order: bool


@frozen
class QueryCorrectionOffsetHeader:
    """Header of QUERY_CORRECTION_OFFSET (308)."""

    compare_group: str
    topic: str
    filter_groups: str | None = None


@frozen
class CloneGroupOffsetRequestHeader:
    """Header of CLONE_GROUP_OFFSET (314)."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


@frozen
class QueryConsumeQueueRequestHeader:
    """Header of QUERY_CONSUME_QUEUE (321)."""

    topic: str
    queue_id: Int32
    index: int
    count: Int32
    consumer_group: str | None = None


@frozen
class ViewBrokerStatsDataRequestHeader:
    """Header of VIEW_BROKER_STATS_DATA (315)."""

    stats_name: str
    stats_key: str


@frozen
class GetBrokerConfigResponseHeader:
    """The version of a broker's configuration, as JSON."""

    version: str


@frozen
class SetCommitLogReadModeRequestHeader:
    """Header of SET_COMMITLOG_READ_MODE (2004); RocketMQ has no class for it."""

    read_ahead_mode: str | None = attrs.field(default=None, metadata=wire("READ_AHEAD_MODE"))
    """`0`: the system reads ahead (`MADV_NORMAL`); `1`: it does not (`MADV_RANDOM`)."""


@frozen
class CheckRocksdbCqWriteProgressRequestHeader:
    """Header of CHECK_ROCKSDB_CQ_WRITE_PROGRESS (354)."""

    topic: str
    check_store_time: int = 0


@frozen
class ExportRocksDBConfigToJsonRequestHeader:
    """Header of EXPORT_ROCKSDB_CONFIG_TO_JSON (355)."""

    config_type: str
    """`topics;subscriptionGroups;consumerOffsets`, or some of them."""
