"""Family topics_groups: `TopicConfigManager` and `SubscriptionGroupManager`."""

import attrs

from conformance.executing import Adapter
from conformance.pretended_time import ORIGIN_MS, shown_version
from nodes.broker.tables.metadata.attributes import AttributeRefusedError
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.protocol.model import SubscriptionGroupConfig, TopicConfig
from nodes.protocol.names import TRACE_TOPIC
from nodes.protocol.wire_names import wire_name

CLUSTER = "c1"
BROKER_NAME = "bk-a"
OF_GROUPS = ("auto_create_subscription_group", "enable_create_sys_group")


class TopicsAndGroups(Adapter):
    begins_empty = False

    def __init__(
        self, state_machine_version=0, enable_single_topic_register=False, trace_topic_enable=False, **options
    ):
        options["trace_topic"] = TRACE_TOPIC if trace_topic_enable else None
        of_groups = {name: options.pop(name) for name in OF_GROUPS if name in options}
        self.topics = TopicConfigManager(now_ms=ORIGIN_MS, cluster=CLUSTER, broker_name=BROKER_NAME, **options)
        self.groups = SubscriptionGroupManager(now_ms=ORIGIN_MS, **of_groups)
        self.single = enable_single_topic_register
        self.state_version = state_machine_version

    @property
    def when(self):
        return {"now_ms": ORIGIN_MS + self.at_ms, "state_version": self.state_version}

    def tables(self):
        return {
            "topics": {name: shown_topic(config) for name, config in self.topics.topics.items()},
            "groups": {name: shown_group(config) for name, config in self.groups.groups.items()},
            "forbidden": {group: dict(topics) for group, topics in self.groups.forbidden.items()},
            "versions": {
                "topics": shown_version(self.topics.data_version),
                "groups": shown_version(self.groups.data_version),
            },
        }

    def initial(self):
        tables = self.tables()
        return {"topics": tables["topics"], "groups": tables["groups"]}

    # Topics

    def create_topic_in_send_message_method(
        self, topic, default_topic, client_default_topic_queue_nums, topic_sys_flag
    ):
        lookup = self.topics.create_topic_in_send_message_method(
            topic, default_topic, client_default_topic_queue_nums, topic_sys_flag, **self.when
        )
        return self._found(lookup)

    def create_topic_in_send_message_back_method(self, topic, queue_nums, perm, is_order, topic_sys_flag):
        lookup = self.topics.create_topic_in_send_message_back_method(
            topic, queue_nums, perm, topic_sys_flag, is_order=is_order, **self.when
        )
        return self._found(lookup)

    def create_topic_if_absent(self, topic, queue_nums, perm, register):
        config = TopicConfig(topic, queue_nums, queue_nums, perm)
        return self._found(self.topics.create_topic_if_absent(config, register=register, **self.when))

    def create_topic_of_tran_check_max_time(self, queue_nums, perm):
        return self._found(self.topics.create_topic_of_tran_check_max_time(queue_nums, perm, **self.when))

    def update_topic_config(self, topic, read, write, perm, attributes):
        config = TopicConfig(topic, read, write, perm, attributes=attributes)
        return refusal(lambda: self.topics.update_topic_config(config, **self.when))

    def delete_topic_config(self, topic):
        self.topics.delete_topic_config(topic, **self.when)

    def update_order_topic_config(self, topics):
        self.topics.update_order_topic_config(topics, **self.when)

    def build_serialize_wrapper(self, topic):
        some = {topic: self.topics.topics[topic]}
        wrapper = self.topics.build_serialize_wrapper(some, now_ms=self.when["now_ms"])
        return {"dv": shown_version(wrapper.data_version)}

    def _found(self, lookup):
        if lookup.config is None:
            return {"result": None}
        calls = self._registered(lookup.config.topic_name) if lookup.created else None
        return {"result": shown_topic(lookup.config), "calls": calls}

    def _registered(self, topic):
        if self.single:
            return [["registerSingleTopicAll", topic]]
        return [["registerIncrement", topic, self.topics.data_version.counter]]

    # Groups

    def find_subscription_group_config(self, group):
        found = self.groups.find_subscription_group_config(group, **self.when)
        return {"found": found is not None, "contains": self.groups.contains_subscription_group(group)}

    def update_subscription_group_config(
        self, group, retry_queue_nums, notify_consumer_ids_changed_enable, consume_enable, attributes
    ):
        config = SubscriptionGroupConfig(
            group,
            retry_queue_nums=retry_queue_nums,
            notify_consumer_ids_changed_enable=notify_consumer_ids_changed_enable,
            consume_enable=consume_enable,
            attributes=attributes,
        )
        return refusal(lambda: self.groups.update_subscription_group_config(config, **self.when))

    def delete_subscription_group_config(self, group):
        self.groups.delete_subscription_group_config(group, **self.when)

    def update_forbidden(self, group, topic, index, set):  # noqa: A002
        return {"value": self.groups.update_forbidden(group, topic, index, forbid=set, **self.when)}


def refusal(change):
    try:
        change()
    except AttributeRefusedError as error:
        return {"error": "RuntimeException", "message": str(error)}
    return {}


def shown_topic(config):
    return {
        "read": config.read_queue_nums,
        "write": config.write_queue_nums,
        "perm": int(config.perm),
        "filterType": config.topic_filter_type,
        "sysFlag": config.topic_sys_flag,
        "order": config.order,
        "attributes": dict(config.attributes),
    }


def shown_group(config):
    cls = SubscriptionGroupConfig
    shown = {wire_name(cls, field): getattr(config, field.name) for field in attrs.fields(cls)}
    # How long a retry waits is a matter of the retry topics, not of the group: here no one can set another policy.
    return shown | {"attributes": dict(config.attributes), "groupRetryPolicy": {"type": "CUSTOMIZED"}}
