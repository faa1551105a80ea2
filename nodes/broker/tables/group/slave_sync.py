"""How a slave adopts the metadata of its master.

Consumer offsets simply replace its own (`ConsumerOffsetManager.put_all`), also newer ones.
Topics and groups are removed and added one by one, and each of these steps increments the version: a slave never
has its master's version, and repeats everything the next time.

Mirrors:
    `org.apache.rocketmq.broker.slave.SlaveSynchronize`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol, TypeVar

from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.protocol.bodies import SubscriptionGroupTable, TopicConfigSerializeWrapper
from nodes.protocol.model import DataVersion

T = TypeVar("T")


def master_to_ask(master_addr: str | None, own_addr: str) -> str | None:
    """The master that a slave copies from; None until a registration has named one, or if it named the slave itself."""
    return None if master_addr is None or master_addr == own_addr else master_addr


def sync_topic_config(
    topics: TopicConfigManager, master: TopicConfigSerializeWrapper, *, now_ms: int, state_version: int = 0
) -> bool:
    """Adopt the master's topics (21), unless the versions are equal; returns whether the file has to be written.

    Raises:
        AttributeRefusedError: a topic of the master has attributes. RocketMQ reads them as changes of attributes, which
            they are not: the topics before it are adopted, those after it are missing until the next attempt.
    """
    return _take_over(
        topics,
        master.data_version,
        list(topics.topics),
        master.topic_config_table,
        delete=partial(topics.delete_topic_config, now_ms=now_ms, state_version=state_version),
        put=partial(topics.update_topic_config, now_ms=now_ms, state_version=state_version),
    )


def sync_subscription_group_config(
    groups: SubscriptionGroupManager, master: SubscriptionGroupTable, *, now_ms: int, state_version: int = 0
) -> bool:
    """Adopt the master's groups (201), unless the versions are equal; returns whether the file has to be written.

    Raises:
        AttributeRefusedError: as `sync_topic_config`.
    """
    return _take_over(
        groups,
        master.data_version,
        list(groups.groups),
        master.subscription_group_table,
        delete=partial(groups.delete_subscription_group_config, now_ms=now_ms, state_version=state_version),
        put=partial(groups.update_subscription_group_config, now_ms=now_ms, state_version=state_version),
    )


class _CopiedTable(Protocol):
    data_version: DataVersion

    def drop(self, name: str, /) -> None: ...


def _take_over(
    table: _CopiedTable,
    version: DataVersion,
    local: list[str],
    master: Mapping[str, T],
    *,
    delete: Callable[[str], None],
    put: Callable[[T], None],
) -> bool:
    """Adopt the version, remove all entries, add the master's; removing what the master lacks makes no version."""
    if table.data_version == version:
        return False
    table.data_version = table.data_version.assign_new_one(version)
    for name in local:
        if name in master:
            delete(name)
        else:
            table.drop(name)
    for config in master.values():
        put(config)
    return True
