"""Family consumers: `ConsumerManager` and `ConsumerGroupInfo`."""

from conformance.client_channels import ClientChannels
from nodes.broker.tables.clients.consumers import (
    CHANNEL_EXPIRED_TIMEOUT_MS,
    COMPENSATION_EXPIRED_TIMEOUT_MS,
    ConsumerGroupEvent,
    ConsumerManager,
)
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)


class Consumers(ClientChannels):
    partly_recorded = ("topicGroups",)

    def __init__(
        self,
        enable_fast_channel_event_process=False,
        channel_expired_timeout=CHANNEL_EXPIRED_TIMEOUT_MS,
        subscription_expired_timeout=COMPENSATION_EXPIRED_TIMEOUT_MS,
        **options,
    ):
        super().__init__()
        self.consumers = ConsumerManager(
            enable_fast_channel_event_process=enable_fast_channel_event_process,
            channel_expired_timeout_ms=channel_expired_timeout,
            compensation_expired_timeout_ms=subscription_expired_timeout,
            **options,
        )

    def tables(self):
        names = self.consumers.group_names()
        return {
            "groups": {name: whole(self.consumers.group(name)) for name in names},
            "compensation": {name: basic(info) for name, info in self.consumers.compensations.items()},
            "topicGroups": {topic: list(node) for topic, node in self.consumers.topic_groups.items()},
        }

    def register(self, group, client, channel, type, model, from_, notify, update_subscription, subs):  # noqa: A002
        update = self.consumers.register_consumer(
            channel,
            client,
            consumer_data(group, type, model, from_, subs),
            now_ms=self.at_ms,
            notify_enabled=notify,
            update_subscription=update_subscription,
        )
        return {"result": update.changed, "events": shown(update.events)}

    def register_without_sub(self, group, client, channel, type, model, from_, notify):  # noqa: A002
        update = self.consumers.register_consumer_without_sub(
            channel, client, consumer_data(group, type, model, from_, ()), now_ms=self.at_ms, notify_enabled=notify
        )
        return {"result": update.changed, "events": shown(update.events)}

    def unregister(self, group, client, channel, notify):
        update = self.consumers.unregister_consumer(group, channel, client, notify_enabled=notify)
        return {"events": shown(update.events)}

    def channel_close(self, channel):
        self.first_closed([channel])
        update = self.consumers.channel_close_event(channel)
        return {"result": update.changed, "events": shown(update.events)}

    def scan(self):
        channels, events = self.consumers.scan_not_active_channels(self.at_ms)
        return {"events": shown(events), "closedChannels": self.first_closed(channels)}

    def compensate_basic(self, group, type, model):  # noqa: A002
        self.consumers.compensate_basic_consumer_info(group, ConsumeType(type), MessageModel(model))

    def compensate_sub(self, group, sub):
        self.consumers.compensate_subscribe_data(group, subscription(sub))

    def query(self, group, topic, client):
        consumers = self.consumers
        info = consumers.group(group)
        found = consumers.find_channel(group, client)
        return {
            "clientIds": list(info.client_ids) if info else None,
            "subData": wanted(consumers.find_subscription(group, topic)),
            "subDataNoCompensation": wanted(consumers.find_subscription(group, topic, compensated=False)),
            "subCount": len(info.subscriptions) if info else 0,
            "findChannel": found and found.client_id,
            "consumeByWho": list(consumers.query_topic_consume_by_who(topic)),
        }


def consumer_data(group, kind, model, start, subs):
    wanted_topics = tuple(subscription(sub) for sub in sorted(subs))
    return ConsumerData(group, ConsumeType(kind), MessageModel(model), ConsumeFromWhere(start), wanted_topics)


def subscription(sub):
    topic, sub_version, expression = sub
    return SubscriptionData(topic, expression, sub_version=sub_version)


def wanted(data):
    return data and [data.topic, data.sub_version, data.sub_string]


def basic(info):
    return {
        "type": info.consume_type and str(info.consume_type),
        "model": info.message_model and str(info.message_model),
        "subs": {topic: [data.sub_version, data.sub_string] for topic, data in info.subscriptions.items()},
    }


def whole(info):
    return basic(info) | {
        "from": str(info.consume_from_where),
        "last": info.last_update_ms,
        "channels": {member.channel: [member.client_id, member.last_update_ms] for member in info.channels.values()},
    }


def shown(events):
    return [_shown(event) for event in events] or None


def _shown(event):
    kind = [str(event.kind), event.group]
    if event.kind is ConsumerGroupEvent.CHANGE:
        return [*kind, sorted(member.channel for member in event.members)]
    members = [[member.client_id, member.channel] for member in event.members]
    if event.kind is ConsumerGroupEvent.REGISTER:
        return [*kind, list(event.topics), *members]
    if event.kind is ConsumerGroupEvent.UNREGISTER:
        return kind
    return [*kind, *members, list(event.topics)]
