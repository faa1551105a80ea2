"""A node's options, changed while it runs.

Whatever a part looks up when it needs it changes at once; what a part was made with waits for the next start.

Mirrors:
    `org.apache.rocketmq.remoting.Configuration`.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from nodes.config_options import Config
from nodes.config_text import from_lines, to_lines, updated, values_of
from nodes.host import Disk, Host
from nodes.protocol.model import DataVersion

_Config = TypeVar("_Config", bound=Config)
CONFIG_FILE = "changed.properties"
BLACK_LIST = ("brokerConfigPath", "configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome", "listenPort")
"""RocketMQ's own, and the port, which an address would follow that nobody listens on."""


class LiveConfig(Generic[_Config]):
    """The options of one node.

    Args:
        host: on whose disk changes are kept.
        config: as they are now.
        apply: hands changed ones to the parts of the node.
    """

    def __init__(self, host: Host, config: _Config, apply: Callable[[_Config], None]) -> None:
        self._host = host
        self._config = config
        self._apply = apply
        self.data_version = DataVersion(timestamp=host.clock.now_ms())
        """Steps with every change."""

    def values(self) -> dict[str, object]:
        """All options that have a value, by name."""
        return values_of(self._config)

    def update(self, text: str) -> tuple[str, ...]:
        """Change options, for the next processes of this node, too.

        Args:
            text: lines of `name=value`; unknown names are passed over.

        Returns:
            The names that were given.

        Raises:
            PermissionError: one of them may not be changed.
            ConfigError: one of them cannot have its value.
            ValueError: the text is no list of options.
        """
        changes = from_lines(text)
        if any(name in changes for name in BLACK_LIST):
            raise PermissionError("Can not update config in black list.")
        self._config = updated(self._config, changes)
        keep_changes(self._host.disk, changes)
        self.data_version = self.data_version.next_version(self._host.clock.now_ms())
        self._apply(self._config)
        return tuple(changes)


def with_kept_changes(disk: Disk, config: _Config) -> _Config:
    """The options of a node that begins: those of its set-up, and what was changed while earlier processes ran."""
    return updated(config, _kept(disk))


def keep_changes(disk: Disk, changes: Mapping[str, str]) -> None:
    """Have later processes of a node begin with these options."""
    disk.write(CONFIG_FILE, to_lines({**_kept(disk), **changes}).encode())


def _kept(disk: Disk) -> dict[str, str]:
    content = disk.read(CONFIG_FILE)
    return {} if content is None else from_lines(content.decode())
