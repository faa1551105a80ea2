"""Options of a node that operators change while it runs.

A part that reads an option on each use sees the change at once; options read at the start wait for the next start.

Mirrors:
    `org.apache.rocketmq.remoting.Configuration`.
"""

from collections.abc import Callable, Container, Mapping
from typing import Generic, TypeVar

from nodes.config.options import Config
from nodes.config.text import from_lines, parsed, to_lines, updated, values_of
from nodes.host import Disk, Host
from nodes.protocol.model import DataVersion

_Config = TypeVar("_Config", bound=Config)
CONFIG_FILE = "changed.properties"
BLACK_LIST = ("brokerConfigPath", "configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome", "listenPort")
"""RocketMQ's own list, and the port, because the node would advertise an address on which it does not listen."""


class LiveConfig(Generic[_Config]):
    """The options of one node.

    Args:
        host: stores changes on its disk.
        config: the present options.
        apply: passes changed options to the parts of the node.
        black_list: options that may not be changed.
        keeps: whether later processes of the node have the changes, too.
    """

    def __init__(
        self,
        host: Host,
        config: _Config,
        apply: Callable[[_Config], None],
        black_list: tuple[str, ...] = BLACK_LIST,
        *,
        keeps: bool = True,
    ) -> None:
        self._host = host
        self._keeps = keeps
        self._black_list = black_list
        self._config = config
        self._apply = apply
        self.data_version = DataVersion(timestamp=host.clock.now_ms())
        """Incremented with every change."""

    def values(self) -> dict[str, object]:
        """All options that have a value, by name."""
        return values_of(self._config)

    def update(self, text: str) -> tuple[str, ...]:
        """Change options, for this process, and for later ones of this node if changes are retained.

        Args:
            text: lines of `name=value`; unknown names, and texts that Java does not parse, change nothing.

        Returns:
            The names in the text.

        Raises:
            PermissionError: one of them may not be changed.
            FieldError: a value is one of Java that the option cannot have here.
            MalformedPropertiesError: the text is no list of options.
        """
        changes = from_lines(text)
        if any(name in changes for name in self._black_list):
            raise PermissionError("Can not update config in black list.")
        self._config = updated(self._config, changes)
        if self._keeps:
            store_changes(self._host.disk, parsed(type(self._config), changes))
        self.data_version = self.data_version.next_version(self._host.clock.now_ms())
        self._apply(self._config)
        return tuple(changes)


def with_stored_changes(disk: Disk, config: _Config) -> _Config:
    """The options at the start of a node: those of its set-up, with the changes of earlier processes."""
    return updated(config, _retained(disk))


def store_changes(disk: Disk, changes: Mapping[str, object]) -> None:
    """Store changed options for later processes of a node."""
    disk.write(CONFIG_FILE, to_lines({**_retained(disk), **changes}).encode())


def forget_changes(disk: Disk, names: Container[str]) -> None:
    """Forget stored changes of some options, because the set-up of the node was changed since."""
    retained = _retained(disk)
    left = {name: value for name, value in retained.items() if name not in names}
    if left != retained:
        disk.write(CONFIG_FILE, to_lines(left).encode())


def _retained(disk: Disk) -> dict[str, str]:
    content = disk.read(CONFIG_FILE)
    return {} if content is None else from_lines(content.decode())
