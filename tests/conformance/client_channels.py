"""What all registries of channels have in common in the sequences."""

from conformance.executing import Adapter

LEFT = "CLIENT_UNREGISTER"


class ClientChannels(Adapter):
    """Groups and channels lie in hash tables: those that leave at one moment leave in no order."""

    def __init__(self):
        self.closed = {}

    def ordered(self, op, out):
        if op not in ("scan", "channel_close"):
            return out
        events, closed = out.get("events") or [], out.get("closedChannels") or []
        return out | {"events": sorted(events, key=_group_and_leaver), "closedChannels": sorted(closed)}

    def first_closed(self, channels):
        """Those that were open until now; a case reports no channel twice."""
        fresh = [channel for channel in dict.fromkeys(channels) if channel not in self.closed]
        self.closed.update(dict.fromkeys(fresh))
        return fresh


def _group_and_leaver(event):
    kind, group, *_ = event
    return (group, False, repr(event)) if kind == LEFT else (group, True, "")
