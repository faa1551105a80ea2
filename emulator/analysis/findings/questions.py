"""Findings as questions of `rmqemu why`: findings have times and subjects, and a question leads to the rows."""

from typing import Protocol

from emulator.history.rows.queues import GroupQueue
from nodes.units import NS_PER_MS

Words = tuple[str, ...]
"""The words of a question."""


class Lasting(Protocol):
    """Whatever has a begin and an end, in ns since the run began."""

    @property
    def start_ns(self) -> int:
        """Its begin."""

    @property
    def end_ns(self) -> int:
        """Its end."""


def about_queue(queue: GroupQueue, at: str = "") -> Words:
    """Who owns a queue; empty: at the end of the run."""
    return ("queue", queue.name, "of", queue.group, *(("at", at) if at else ()))


def about_view(group: str, topic: str, at: str) -> Words:
    """From which members and queues a group allocates a topic."""
    return ("view", f"{group}/{topic}", "at", at)


def about_route(topic: str, at: str) -> Words:
    """Who serves a topic."""
    return ("route", topic, "at", at)


def about_topic(topic: str, at: str = "") -> Words:
    """Who lists a topic, and who serves it; empty: at the end of the run."""
    return ("topic", topic, *(("at", at) if at else ()))


def about_group(group: str, at: str = "") -> Words:
    """The members of a group, and what they hold; empty: at the end of the run."""
    return ("group", group, *(("at", at) if at else ()))


def about_transaction(unique_id: str) -> Words:
    """What became of a transaction."""
    return ("transaction", unique_id)


def about_node(node: str, at: str = "") -> Words:
    """The stage of a process; empty: at the end of the run."""
    return ("node", node, *(("at", at) if at else ()))


def about_sends(producer: str) -> Words:
    """Which attempts of a node to send failed in the whole run."""
    return ("sends", "of", producer)


def inside(row: Lasting) -> str:
    """An instant shortly before the end of a finding, when most is known of it."""
    last_ns = max(row.start_ns, row.end_ns - 1)
    rounded_ns = last_ns - last_ns % NS_PER_MS
    return instant(rounded_ns if rounded_ns >= row.start_ns else last_ns)


def midway(row: Lasting) -> str:
    """An instant in the middle of a finding: what causes it is there, while its end may have other causes."""
    return instant(row.start_ns + round((row.end_ns - row.start_ns) // 2, -6))


def instant(t_ns: int) -> str:
    """An instant as a word of a question: `31.2s`."""
    whole, part = divmod(t_ns, 1_000 * NS_PER_MS)
    return f"{whole}.{part:09d}".rstrip("0").removesuffix(".") + "s"
