"""Who allocates the queues of a group, and by what: its members, any broker, or one pinned broker, the assigner.

RocketMQ 5.3.3 knows the first two. The assigner is the proposal of RocketMQ's mission "rebalancing architecture
optimization"; its questions travel as QUERY_ASSIGNMENT with further fields, which RocketMQ's own brokers ignore.
"""

from enum import StrEnum

from nodes.protocol.model import MessageQueue
from nodes.values import frozen


class RebalanceMode(StrEnum):
    """Who allocates the queues of a topic among the members of a group."""

    CLIENT = "client"
    """Each member, from its own view."""
    BROKER = "broker"
    """Any broker of the topic, from its own view, and without memory (RIP-19)."""
    ASSIGNER = "assigner"
    """One broker, the same for all members whose routes agree; it remembers what it has assigned."""


@frozen
class StrategyParameters:
    """The options of a consumer that strategies read: texts and numbers, as in its configuration."""

    message_queue_list: str | None = None
    """CONFIG: queues as `topic@broker@queueId, ...`; None: never configured."""
    consumeridcs: str | None = None
    """MACHINE_ROOM: rooms; None: never set."""
    machine_rooms: str | None = None
    """MACHINE_ROOM_NEARBY: `room=prefix, ...`."""
    inner: str = "AVG"
    """MACHINE_ROOM_NEARBY: the strategy within one room."""
    virtual_node_cnt: int = 10
    """CONSISTENT_HASH: places of each member on the ring."""
    hash_function: str | None = None
    """CONSISTENT_HASH: a function of the user's own; None: RocketMQ's."""


@frozen
class AssignmentClaim:
    """What a member sends the assigner with its name."""

    owned: tuple[MessageQueue, ...] = ()
    """The queues in its table, those that it is about to release included; sorted."""
    epoch: int = 0
    """Of the allocation that it followed last; 0: of none."""
    revoke_before_assign: bool = False
    """A queue that another member has in its table is withheld until that member has released it."""
    parameters: StrategyParameters = StrategyParameters()
    """Of the strategy."""
    mq_all: tuple[MessageQueue, ...] | None = None
    """PR2169: all queues as the member knows them; None: the assigner's own view counts."""


@frozen
class RebalanceSetting:
    """Who allocates the queues of a group, as an operator has set it.

    Body of SET_REBALANCE_MODE. Members learn it with the answer to their next pass; of two the newer one counts.
    """

    consumer_group: str
    mode: RebalanceMode
    strategy_name: str = ""
    """Strategy of the assigner; empty: the one that each member is configured with."""
    parameters: StrategyParameters | None = None
    """Of that strategy; None: those that each member is configured with."""
    version_ms: int = 0
    """Wall clock of the operator."""
