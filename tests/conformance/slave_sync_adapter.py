"""Family slave_sync: `SlaveSynchronize` with a scripted master."""

from conformance.executing import Adapter
from conformance.pretended_time import ORIGIN_MS, shown_version
from conformance.topics_groups_adapter import BROKER_NAME, CLUSTER, shown_group, shown_topic
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.group.slave_sync import master_to_ask, sync_subscription_group_config, sync_topic_config
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.protocol.bodies import SubscriptionGroupTable, TopicConfigSerializeWrapper
from nodes.protocol.model import DataVersion, SubscriptionGroupConfig, TopicConfig


class SlaveSync(Adapter):
    begins_empty = False
    sets_base_line = ("set_local_topics", "set_local_groups")

    def __init__(self, broker_id=1, enable_slave_acting_master=False, state_machine_version=0):
        del enable_slave_acting_master  # has no say in this
        self.address = f"10.0.0.{broker_id}:10911"
        self.state_version = state_machine_version
        self.master = None
        self.topics = TopicConfigManager(now_ms=ORIGIN_MS, cluster=CLUSTER, broker_name=BROKER_NAME)
        self.groups = SubscriptionGroupManager(now_ms=ORIGIN_MS)
        self.offsets = ConsumerOffsetManager(now_ms=ORIGIN_MS)

    @property
    def when(self):
        return {"now_ms": ORIGIN_MS + self.at_ms, "state_version": self.state_version}

    def tables(self):
        return {
            "topics": {name: shown_topic(config) for name, config in self.topics.topics.items()},
            "groups": {name: shown_group(config) for name, config in self.groups.groups.items()},
            "versions": {
                "topics": shown_version(self.topics.data_version),
                "groups": shown_version(self.groups.data_version),
            },
        }

    def set_slave_sync_master(self, addr):
        self.master = addr

    # Topics and groups

    def set_local_topics(self, topics, queue_nums, dv):
        for topic in list(self.topics.topics):
            self.topics.drop(topic)
        for topic in topics:
            self.topics.update_topic_config(TopicConfig(topic, queue_nums, queue_nums), **self.when)
        self.topics.data_version = DataVersion(*dv)

    def sync_topic_config(self, master):
        if master_to_ask(self.master, self.address) is not None and isinstance(master, dict):
            table = {topic: TopicConfig(topic, count, count) for topic, count in master["topics"].items()}
            sync_topic_config(self.topics, TopicConfigSerializeWrapper(table, DataVersion(*master["dv"])), **self.when)
        version = shown_version(self.topics.data_version)
        return {"localTopics": sorted(self.topics.topics), "topicVersion": version}

    def set_local_groups(self, groups, dv):
        for group in list(self.groups.groups):
            self.groups.drop(group)
        for group in groups:
            self.groups.update_subscription_group_config(SubscriptionGroupConfig(group), **self.when)
        self.groups.data_version = DataVersion(*dv)

    def sync_subscription_group_config(self, dv, groups, retry_queue_nums):
        if master_to_ask(self.master, self.address) is not None:
            table = {group: SubscriptionGroupConfig(group, retry_queue_nums=retry_queue_nums) for group in groups}
            sync_subscription_group_config(self.groups, SubscriptionGroupTable(table, DataVersion(*dv)), **self.when)
        version = shown_version(self.groups.data_version)
        return {"localGroups": sorted(self.groups.groups), "localVersion": version}

    # Consumer offsets

    def commit_offset(self, group, topic, queue_id, offset):
        self.offsets.commit_offset(group, topic, queue_id, offset, **self.when)

    def set_local_offset_version(self, dv):
        self.offsets.data_version = DataVersion(*dv)

    def sync_consumer_offset(self, fail, dv, offsets):
        requested = master_to_ask(self.master, self.address)
        if requested is not None and not fail:
            entries = {key: {int(queue): offset for queue, offset in queues.items()} for key, queues in offsets.items()}
            self.offsets.put_all(entries, DataVersion(*dv))
        local = {
            key: {str(queue): offset for queue, offset in queues.items()}
            for key, queues in self.offsets.offsets.items()
        }
        return {
            "localOffsets": local,
            "localVersion": shown_version(self.offsets.data_version),
            "calls": None if requested is None else [["getAllConsumerOffset", requested]],
        }
