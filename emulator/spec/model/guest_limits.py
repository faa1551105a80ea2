"""What guests may use of the process in which all nodes run."""

import attrs

from nodes.fields import LONG_MAX, whole

_MIB = 1024 * 1024


@attrs.frozen
class GuestLimits:
    """Limits of guests; what exceeds one is answered with SYSTEM_BUSY, or its connection is closed.

    Real nodes have processes of their own, so a program that harms one of them harms no other. How much the tables of
    a node hold is limited by its own options: `nodes.config.tables`.
    """

    connections: int = whole(1_000, minimum=1)
    """Connections of one guest to one port; of further ones the silent ones are closed, or the new one."""
    silent_ms: int = whole(120_000, unit="milliseconds", minimum=1)
    """How long a connection may stay open without any byte; as RocketMQ's `serverChannelMaxIdleTimeSeconds`."""
    requests: int = whole(1_000, minimum=1)
    """Unanswered requests of one connection; further ones are answered SYSTEM_BUSY."""
    frames_per_turn: int = whole(16, minimum=1)
    """Frames that one connection delivers before the others have their turn."""
    cpu_percent: int = whole(80, minimum=1, maximum=100)
    """Share of the emulator's time that one connection may take; while it has taken more, nothing is read from it if
    others need the time."""
    cpu_debt_ms: int = whole(200, unit="milliseconds", minimum=1)
    """When it has taken this much more than its share, its requests are answered SYSTEM_BUSY."""
    unfinished_bytes: int = whole(64 * _MIB, minimum=1)
    """Bytes of frames that have not arrived completely, of all connections; beyond that the largest is closed."""
    unsent_bytes: int = whole(16 * _MIB, minimum=1)
    """Bytes that wait for a guest that does not read; beyond that its connection is closed."""
    all_unsent_bytes: int = whole(128 * _MIB, minimum=1)
    """The same for all connections; beyond that the one with the most is closed."""
    memory_bytes: int = whole(2_048 * _MIB, minimum=1, limit=LONG_MAX)
    """Memory of the whole process; while it has more, requests of guests are answered SYSTEM_BUSY."""
