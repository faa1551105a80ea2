"""Family producers: `ProducerManager`."""

from conformance.client_channels import ClientChannels
from nodes.broker.tables.clients.producers import ProducerManager


class Producers(ClientChannels):
    def __init__(self, channel_expired_timeout=None, **options):
        """The timeout is an option of the broker that 5.3.3 does not ask about producers."""
        del channel_expired_timeout
        super().__init__()
        self.producers = ProducerManager(**options)

    def tables(self):
        groups = {
            group: {member.channel: [member.client_id, member.last_update_ms] for member in members.values()}
            for group, members in self.producers.groups.items()
        }
        return {"groups": groups, "clients": dict(self.producers.clients)}

    def register(self, group, client, channel):
        self.producers.register_producer(group, channel, client, self.at_ms)

    def unregister(self, group, client, channel):
        return {"events": shown(self.producers.unregister_producer(group, channel, client))}

    def channel_close(self, channel):
        self.first_closed([channel])
        events = self.producers.channel_close_event(channel)
        return {"result": bool(events), "events": shown(events)}

    def scan(self):
        channels, events = self.producers.scan_not_active_channels(self.at_ms)
        return {"events": shown(events), "closedChannels": self.first_closed(channels)}

    def query(self, group, client):
        answers = {
            "online": self.producers.group_online(group),
            "findChannel": self.producers.find_channel(client),
        }
        if len(self.producers.groups.get(group, {})) <= 1:  # with several it is a matter of turns
            answers["availableChannel"] = self.producers.available_channel(group)
        return answers


def shown(events):
    return [
        [str(event.kind), event.group, event.member and [event.member.client_id, event.member.channel]]
        for event in events
    ] or None
