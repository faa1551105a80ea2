"""A strategy of one's own: the first member gets half of the queues, the others share the rest."""

from collections.abc import Sequence

from nodes.protocol.model import MessageQueue


def big_first(
    _group: str, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str], /
) -> list[MessageQueue]:
    """Called by every member for itself, for each topic, with sorted queues and members."""
    half = len(queues) // 2 if len(members) > 1 else len(queues)
    if client_id == members[0]:
        return list(queues[:half])
    return list(queues[half:][members.index(client_id) - 1 :: len(members) - 1])
