"""How a slave takes over the metadata of its master.

Consumer offsets are simply put over its own (`ConsumerOffsetManager.put_all`), whichever are newer.
Topics and groups are taken over by taking everything out and putting everything in, each of which steps the version:
a slave is never at its master's version, and does it all again the next time.

Mirrors:
    `org.apache.rocketmq.broker.slave.SlaveSynchronize`.
"""

from nodes.broker.subscription_groups import SubscriptionGroupManager
from nodes.broker.topics import TopicConfigManager
from nodes.protocol.bodies import SubscriptionGroupTable, TopicConfigSerializeWrapper


def master_to_ask(master_addr: str | None, own_addr: str) -> str | None:
    """Whom a slave copies from: nobody while no registration has named a master, or has named itself."""
    return None if master_addr is None or master_addr == own_addr else master_addr


def sync_topic_config(
    topics: TopicConfigManager, master: TopicConfigSerializeWrapper, *, now_ms: int, state_version: int = 0
) -> bool:
    """Take over the master's topics (21), unless the versions are equal; returns whether the file has to be written.

    Raises:
        AttributeRefusedError: a topic of the master has attributes. They are taken for orders to change some, which
            they are not: the topics before it are taken over, those after it are missing until the next attempt.
    """
    if topics.data_version == master.data_version:
        return False
    topics.data_version = topics.data_version.assign_new_one(master.data_version)
    for topic in list(topics.topics):
        if topic in master.topic_config_table:
            topics.delete_topic_config(topic, now_ms=now_ms, state_version=state_version)
        else:
            topics.drop(topic)
    for config in master.topic_config_table.values():
        topics.update_topic_config(config, now_ms=now_ms, state_version=state_version)
    return True


def sync_subscription_group_config(
    groups: SubscriptionGroupManager, master: SubscriptionGroupTable, *, now_ms: int, state_version: int = 0
) -> bool:
    """Take over the master's groups (201), unless the versions are equal; returns whether the file has to be written.

    Raises:
        AttributeRefusedError: as `sync_topic_config`.
    """
    if groups.data_version == master.data_version:
        return False
    groups.data_version = groups.data_version.assign_new_one(master.data_version)
    for group in list(groups.groups):
        if group in master.subscription_group_table:
            groups.delete_subscription_group_config(group, now_ms=now_ms, state_version=state_version)
        else:
            groups.drop(group)
    for config in master.subscription_group_table.values():
        groups.update_subscription_group_config(config, now_ms=now_ms, state_version=state_version)
    return True
