"""Who allocates the queues of each group, as operators have set it."""

from collections.abc import Mapping

from nodes.protocol.assigning import RebalanceSetting
from nodes.protocol.registry import decode_body, encode_body
from nodes.values import frozen


@frozen
class RebalanceSettingTable:
    """All settings of a broker: its file."""

    settings: Mapping[str, RebalanceSetting]
    """group -> setting."""


class RebalanceSettings:
    """The settings of one broker; a group without one does what its members are configured to do.

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
