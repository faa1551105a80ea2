"""What configuration files set: options as texts, each with its place, and the nodes that they are for."""

import re

import attrs

from emulator.base.errors import UserError
from emulator.spec.rocketmq.file_kinds import FileKind
from nodes.fields import shown
from nodes.secret import is_secret_name

_TEMPLATE = re.compile(
    r"^[ \t]*+\{\{"
    r"|\{\{-?[ \t]*+(?:\.(?:Values|Release|Chart|Files|Capabilities)\b|(?:include|template|define)[ \t]|toYaml)",
    re.MULTILINE,
)
_ANY_TEMPLATE = re.compile(r"\{\{")
_SHOWN_MAX = 120


class ConfigurationError(UserError):
    """A configuration file cannot be imported; the text is one line with file and line."""

    def __init__(self, source: str, line: int, problem: str) -> None:
        super().__init__(f"{source}:{line}: {problem}" if line else f"{source}: {problem}")


@attrs.frozen
class Setting:
    """One option as a file sets it."""

    name: str
    """RocketMQ's, or an unknown one."""
    value: str = attrs.field(repr=False)
    source: str
    """The file."""
    line: int
    """From 1; 0: unknown."""
    given_as: str = ""
    """How the file names it, if not by the name of the option: `BROKER_NAME`, `-n`."""

    @property
    def place(self) -> str:
        """`broker.conf:3`."""
        return f"{self.source}:{self.line}" if self.line else self.source

    @property
    def is_secret(self) -> bool:
        """Whether its value must be copied nowhere."""
        return is_secret_name(self.name)

    @property
    def shown_value(self) -> str:
        """Its value for comments and messages, without a secret, in one line."""
        return "***" if self.is_secret else shown(self.value, _SHOWN_MAX)


@attrs.frozen
class PublishedPort:
    """A port of a container that is open outside under a number."""

    published: str
    target: str
    by: str
    """`ports`, `Service NAME`."""


@attrs.frozen
class ConfiguredNode:
    """A node, or several alike, and what the files set for it."""

    kind: FileKind
    source: str
    line: int
    """Where it stands in the file; 0: it is the whole file."""
    settings: tuple[Setting, ...]
    hosts: tuple[str, ...] = ()
    """Name of the host of each node: pods, containers; empty: one node, on a host without a known name."""
    is_in_container: bool = False
    """Whether a broker shares its process: then its file has no options of connections, and none of ACL 2.0."""
    slaves: int = 0
    """Slaves of each of these brokers, as an operator makes them."""
    notes: tuple[str, ...] = ()
    """What stands in the file and is not taken, and what that changes."""
    network: str = ""
    """The private network in which it lives: `docker`, `kubernetes`; empty: none."""
    is_on_host: bool = False
    """Whether it has the address of its machine although others of its network have their own."""
    ports: tuple[PublishedPort, ...] = ()
    """Ports of its process that are open outside."""

    def text(self, name: str) -> str | None:
        """The text of an option: the last one that sets it counts, as in RocketMQ; None: nothing does."""
        return next((setting.value for setting in reversed(self.settings) if setting.name == name), None)


def refuse_template(text: str, source: str, *, anywhere: bool) -> None:
    """Refuse a chart template that was not rendered.

    Args:
        text: of the file.
        source: its name.
        anywhere: whether any `{{` is one; else one with the words of Helm, or at the begin of a line.

    Raises:
        ConfigurationError: there is one; with its line.
    """
    found = (_ANY_TEMPLATE if anywhere else _TEMPLATE).search(text)
    if found is not None:
        line = text.count("\n", 0, found.end()) + 1
        problem = "expected rendered text, not a template with {{ }}: import what `helm template` prints"
        raise ConfigurationError(source, line, problem)
