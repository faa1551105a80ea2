"""The consumer groups that a broker is configured for, and their version.

Mirrors:
    `org.apache.rocketmq.broker.subscription.SubscriptionGroupManager`.
"""

import re
from collections.abc import Mapping

import attrs

from nodes.broker.tables.metadata.attributes import GROUP_ATTRIBUTES, alter_current_attributes
from nodes.config.tables import MAX_GROUPS
from nodes.protocol.bodies import SubscriptionGroupTable
from nodes.protocol.body_codec import decode_body
from nodes.protocol.errors import require_room
from nodes.protocol.model import DataVersion, SubscriptionGroupConfig
from nodes.protocol.names import is_sys_consumer_group

SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
    "CID_RMQ_SYS_TRANS",
)
GROUP_NAME_LENGTH_MAX = 255
INDEX_PERM_READ = 2
"""Number of the bit that forbids reads."""
_LEGAL_NAME = re.compile(r"[%|a-zA-Z0-9_-]*")


class SubscriptionGroupManager:
    """The groups of one broker; every change makes a new version."""

    def __init__(
        self,
        *,
        now_ms: int,
        auto_create_subscription_group: bool = True,
        enable_create_sys_group: bool = True,
        max_groups: int = MAX_GROUPS,
    ) -> None:
        self._max_groups = max_groups
        self._auto_create = auto_create_subscription_group
        self._auto_create_system = enable_create_sys_group
        self._groups = {group: SubscriptionGroupConfig(group) for group in SYSTEM_GROUPS}
        self._forbidden: dict[str, dict[str, int]] = {}
        self.data_version = DataVersion(timestamp=now_ms)

    @property
    def groups(self) -> Mapping[str, SubscriptionGroupConfig]:
        """Group -> config."""
        return self._groups

    @property
    def forbidden(self) -> Mapping[str, Mapping[str, int]]:
        """Group -> topic -> forbidden bits."""
        return self._forbidden

    def contains_subscription_group(self, group: str) -> bool:
        """Whether the group exists; never creates it. One with a blank name, which can be created, does not."""
        return bool(group.strip()) and group in self._groups

    def find_subscription_group_config(
        self, group: str, *, now_ms: int, state_version: int = 0
    ) -> SubscriptionGroupConfig | None:
        """The group, created with defaults if that is allowed and the name is legal.

        Returns:
            The group; None if it does not exist and may not be created. A new version shows that it was created.
        """
        config = self._groups.get(group)
        if config is not None:
            return config
        is_system = is_sys_consumer_group(group)
        if not self._auto_create and not (self._auto_create_system and is_system):
            return None
        if len(group) > GROUP_NAME_LENGTH_MAX or not _LEGAL_NAME.fullmatch(group):
            return None
        self.require_room(group)
        config = SubscriptionGroupConfig(group)
        self._put(config, now_ms, state_version)
        return config

    def require_room(self, group: str) -> None:
        """Refuse a new group if there are too many; a request that puts one asks first.

        Raises:
            TableFullError: the table is full.
        """
        require_room(self._groups, group, self._max_groups, "groups")

    def update_subscription_group_config(
        self, config: SubscriptionGroupConfig, *, now_ms: int, state_version: int = 0
    ) -> None:
        """Put a group; the version changes even if the group does not.

        Args:
            config: the group; its attributes are changes to those that it has.
            now_ms: wall clock of the broker.
            state_version: the store's state machine version.

        Raises:
            AttributeRefusedError: the attributes are not allowed; nothing was changed.
        """
        known = self._groups.get(config.group_name)
        current = known.attributes if known else {}
        attributes = alter_current_attributes(GROUP_ATTRIBUTES, current, config.attributes, create=known is None)
        self._put(attrs.evolve(config, attributes=attributes), now_ms, state_version)

    def delete_subscription_group_config(self, group: str, *, now_ms: int, state_version: int = 0) -> None:
        """Remove a group and its forbidden bits; if there were only the bits, the version stays."""
        self._forbidden.pop(group, None)
        if self._groups.pop(group, None) is not None:
            self.data_version = self.data_version.next_version(now_ms, state_version)

    def drop(self, group: str) -> None:
        """Remove a group without a new version, as a slave does with groups that its master lacks."""
        self._groups.pop(group, None)
        self._forbidden.pop(group, None)

    # Forbidden bits

    def get_forbidden(self, group: str, topic: str) -> int:
        """The forbidden bits of a group on a topic; 0 if nothing is forbidden."""
        return self._forbidden.get(group, {}).get(topic, 0)

    def is_read_forbidden(self, group: str, topic: str) -> bool:
        """Whether a group must not read a topic."""
        return bool(self._forbidden) and bool(self.get_forbidden(group, topic) & 1 << INDEX_PERM_READ)

    def update_forbidden(
        self, group: str, topic: str, index: int, *, forbid: bool, now_ms: int, state_version: int = 0
    ) -> int:
        """Set or clear one bit; clearing the last bit of a topic clears all topics of the group without a new version.

        Args:
            group: the group.
            topic: the topic.
            index: number of the bit.
            forbid: whether the bit is set.
            now_ms: wall clock of the broker.
            state_version: the store's state machine version.

        Returns:
            The bits after the change.
        """
        bit = 1 << index
        known = self.get_forbidden(group, topic)
        bits = known | bit if forbid else known & ~bit
        if bits:
            self._forbidden.setdefault(group, {})[topic] = bits
            self.data_version = self.data_version.next_version(now_ms, state_version)
        else:
            self._forbidden.pop(group, None)
        return bits

    def _put(self, config: SubscriptionGroupConfig, now_ms: int, state_version: int) -> None:
        self._groups[config.group_name] = config
        self.data_version = self.data_version.next_version(now_ms, state_version)

    def wrapper(self) -> SubscriptionGroupTable:
        """All groups with their version, for a slave."""
        return SubscriptionGroupTable(dict(self._groups), self.data_version)

    def decode(self, content: bytes) -> None:
        """Add the groups of a file to the system groups, and adopt its version.

        Raises:
            ProtocolError: the file is damaged.
        """
        loaded = decode_body(SubscriptionGroupTable, content)
        self._groups.update(loaded.subscription_group_table)
        self.data_version = loaded.data_version
