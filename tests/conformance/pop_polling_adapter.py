"""Family pop_polling: `PopLongPollingService`."""

from conformance.executing import Adapter
from nodes.broker.tables.pop.polling import PopLongPolling, PopPollingOptions

KNOWN_GROUPS = ("g",)
"""Groups that the broker of the cases has."""


class PopPolling(Adapter):
    def __init__(
        self,
        notify_last=False,
        pop_polling_size=1024,
        max_pop_polling_size=100_000,
        pop_long_polling_force_notify_interval=800,
    ):
        options = PopPollingOptions(pop_polling_size, max_pop_polling_size, pop_long_polling_force_notify_interval)
        self.open = {}
        self.polls = PopLongPolling(options, lambda held: self.open[held[1]], notify_last=notify_last)

    def tables(self):
        return {
            "held": {key: [pop.request[0] for pop in pops] for key, pops in self.polls.held.items()},
            "total": {"n": self.polls.total},
            "groupsOfTopic": {topic: sorted(groups) for topic, groups in self.polls.groups_of_topic.items()},
        }

    def ordered(self, op, out):
        # Which group comes first is an order of hashes.
        return out | {"woken": sorted(out["woken"])} if op == "message_arriving" else out

    def poll(self, id, channel, topic, group, queue_id, poll_time, exp, born_time=None):  # noqa: A002
        born_ms = self.at_ms if born_time is None else born_time
        tags = None if exp is None else [tag.strip() for tag in exp.split("||")]
        matches = None if tags is None or tags == ["*"] else lambda tag: tag is None or tag in tags
        self.open.setdefault(channel, True)
        result = self.polls.polling(
            (id, channel),
            topic,
            group,
            queue_id,
            born_ms=born_ms,
            poll_ms=poll_time,
            now_ms=self.at_ms,
            matches=matches,
        )
        return {"result": str(result), "woken": []}

    def message_arriving(self, topic, queue_id, offset, tag):
        return {"woken": [name for name, _ in self.polls.message_arriving(topic, queue_id, offset, tag)]}

    def notify_group(self, topic, queue_id, group):
        woken = [name for name, _ in self.polls.notify(topic, group, queue_id)]
        return {"result": bool(woken), "woken": woken}

    def channel_close(self, channel):
        if channel in self.open:  # one that no one has used yet cannot be closed
            self.open[channel] = False
        return {"woken": []}

    def timeout_scan(self):
        return {"woken": [name for name, _ in self.polls.timed_out(self.at_ms)]}

    def clean_unused(self, topics):
        self.polls.clean_unused(topics.__contains__, KNOWN_GROUPS.__contains__)
        return {"woken": []}
