"""Disturbances: what a kind of fault does to what nodes know of each other, and what follows when it ends."""

from enum import StrEnum

import attrs


class Learns(StrEnum):
    """What nodes have to learn after a fault has begun or ended, which takes them as long as their timers say."""

    NOTHING = "nothing"
    """Nothing, or what the lives of processes say: that one was killed, suspended or resumed."""
    SILENCE = "silence"
    """That a node does not answer: nodes wait before they give it up."""
    RETURN = "return"
    """That frames arrive again: clients send heartbeats and poll routes."""
    ROUTE = "route"
    """That a topic or a broker can no longer be read or written, or can again: clients poll routes."""
    ASSIGNER = "assigner"
    """Which node allocates the queues of a group."""


class Concerns(StrEnum):
    """What the subject of a fault names."""

    NODES = "nodes"
    """Nodes: the groups of the consumers among them, or all groups if it names a server."""
    GROUP = "group"
    """A consumer group."""


@attrs.frozen
class Disturbance:
    """What a kind of fault does to what nodes know of each other."""

    begins: Learns = Learns.NOTHING
    """What nodes have to learn once it has begun."""
    ends: Learns = Learns.NOTHING
    """What they have to learn once it has ended."""
    hinders_frames: bool = False
    """Whether frames may be lost or late while it lasts, so that notifications may not arrive."""
    moves_clock: bool = False
    """Whether a wall clock is wrong while it lasts."""
    concerns: Concerns = Concerns.NODES


@attrs.frozen
class Frame:
    """A request, or its answer, that a fault may keep from arriving."""

    src: str
    dst: str
    code: int | None = None
    """RocketMQ's request code; None: of any request."""
    group: str | None = None
    """The group in the header of the request; None: of any."""
    topic: str | None = None
    """The topic in the header of the request; None: of any."""


BLOCKING_MS = 1_000
"""From this delay on, and from this time between two turns of a CPU, calls are as good as lost."""
UNHEARD = Disturbance(Learns.SILENCE, Learns.RETURN, hinders_frames=True)
"""Frames do not arrive in time."""
WRONG_CLOCK = Disturbance(Learns.RETURN, Learns.RETURN, moves_clock=True)
IN_LIVES = Disturbance()
"""All that nodes have to learn is in the lives of processes."""
