"""Broker-side rebalance: the queues of a member, the message request mode of each group, and who allocates for it."""

from collections.abc import Mapping, Sequence

from nodes.allocation.for_pop import allocate_for_pop
from nodes.allocation.strategies import STRATEGIES_OF_BROKERS
from nodes.allocation.strategy import AllocationError
from nodes.protocol.assigning import RebalanceSetting
from nodes.protocol.bodies import (
    MessageQueueAssignment,
    MessageRequestModeSerializeWrapper,
    QueryAssignmentRequestBody,
    SetMessageRequestModeRequestBody,
)
from nodes.protocol.java import java_sorted
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageModel, MessageQueue, MessageRequestMode
from nodes.protocol.registry import decode_body, encode_body
from nodes.values import frozen


def do_load_balance(
    requested: QueryAssignmentRequestBody,
    mode: SetMessageRequestModeRequestBody,
    queues: Sequence[MessageQueue] | None,
    client_ids: Sequence[str] | None,
    *,
    server_load_balancer_enable: bool,
) -> tuple[MessageQueueAssignment, ...] | None:
    """The queues of a member, computed again for every request; nothing makes the brokers of a topic agree.

    Args:
        requested: the request.
        mode: message request mode of the group.
        queues: queues of the topic as this broker knows them, sorted; None: the topic is unknown.
        client_ids: members of the group as this broker knows them; None: the group is unknown.
        server_load_balancer_enable: if False, every member gets all queues.

    Returns:
        The queues, each once, sorted; empty: the member drops all its queues; None: it keeps them.

    Mirrors:
        `QueryAssignmentProcessor#doLoadBalance`.
    """
    if queues is None:
        return None
    if requested.message_model is MessageModel.BROADCASTING or not server_load_balancer_enable:
        return _assignments(queues, mode.mode)
    allocate = STRATEGIES_OF_BROKERS.get(requested.strategy_name)
    if client_ids is None or allocate is None:
        return None
    members = java_sorted(client_ids)
    try:
        if mode.mode is MessageRequestMode.POP:
            share = mode.pop_share_queue_num
            mine = allocate_for_pop(allocate, requested.consumer_group, requested.client_id, queues, members, share)
        else:
            mine = allocate(requested.consumer_group, requested.client_id, queues, members)
    except AllocationError:
        return None
    return _assignments(mine, mode.mode)


def _assignments(queues: Sequence[MessageQueue], mode: MessageRequestMode) -> tuple[MessageQueueAssignment, ...]:
    return tuple(MessageQueueAssignment(queue, mode) for queue in sorted(dict.fromkeys(queues)))


class MessageRequestModeManager:
    """Message request modes by topic and group; only members with broker-side rebalance get to know them.

    Args:
        default_mode: where no mode was set.
        default_pop_share_queue_num: the share number of that default if it is POP.
    """

    def __init__(
        self,
        default_mode: MessageRequestMode = MessageRequestMode.PULL,
        default_pop_share_queue_num: int = -1,
    ) -> None:
        self._default_mode = default_mode
        self._default_pop_share_queue_num = default_pop_share_queue_num
        self._modes: dict[str, dict[str, SetMessageRequestModeRequestBody]] = {}

    def set_mode(self, set_message_request_mode_request_body: SetMessageRequestModeRequestBody) -> None:
        """Set the mode of a topic and a group."""
        self._modes.setdefault(set_message_request_mode_request_body.topic, {})[
            set_message_request_mode_request_body.consumer_group
        ] = set_message_request_mode_request_body

    def mode(self, topic: str, group: str) -> SetMessageRequestModeRequestBody:
        """The mode of a topic and a group; retry topics are pulled, unless a slave has copied another mode."""
        reported = self._modes.get(topic, {}).get(group)
        if reported is not None:
            return reported
        mode = MessageRequestMode.PULL if topic.startswith(RETRY_TOPIC_PREFIX) else self._default_mode
        share = self._default_pop_share_queue_num if mode is MessageRequestMode.POP else 0
        return SetMessageRequestModeRequestBody(topic, group, mode, share)

    def wrapper(self) -> MessageRequestModeSerializeWrapper:
        """The whole table."""
        return MessageRequestModeSerializeWrapper({topic: dict(modes) for topic, modes in self._modes.items()})

    def adopt(self, master: MessageRequestModeSerializeWrapper) -> None:
        """Replace the table by the master's; it has no version, so every copy does this."""
        self._modes = {topic: dict(modes) for topic, modes in master.message_request_mode_map.items()}

    def encode(self) -> bytes:
        """The file of modes."""
        return encode_body(self.wrapper())

    def decode(self, content: bytes) -> None:
        """Read a file of modes.

        Raises:
            ProtocolError: the file is damaged.
        """
        self.adopt(decode_body(MessageRequestModeSerializeWrapper, content))


@frozen
class RebalanceSettingTable:
    """All settings of a broker: its file."""

    settings: Mapping[str, RebalanceSetting]
    """group -> setting."""


class RebalanceSettings:
    """Who allocates the queues of each group, as operators have set it; others do what members are configured to do.

    Args:
        max_groups: groups that may have a setting.
    """

    def __init__(self, *, max_groups: int) -> None:
        self._max_groups = max_groups
        self._settings: dict[str, RebalanceSetting] = {}

    def set(self, setting: RebalanceSetting) -> bool:
        """Keep a setting unless a newer one is known; returns whether there was room for it."""
        known = self._settings.get(setting.consumer_group)
        if known is None and len(self._settings) >= self._max_groups:
            return False
        if known is None or known.version_ms <= setting.version_ms:
            self._settings[setting.consumer_group] = setting
        return True

    def of(self, group: str) -> RebalanceSetting | None:
        """The setting of a group."""
        return self._settings.get(group)

    def encode(self) -> bytes:
        """The file of settings."""
        return encode_body(RebalanceSettingTable(dict(self._settings)))

    def decode(self, content: bytes) -> None:
        """Read a file of settings.

        Raises:
            ProtocolError: the file is damaged.
        """
        self._settings = dict(decode_body(RebalanceSettingTable, content).settings)
