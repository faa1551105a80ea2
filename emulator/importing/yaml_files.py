"""YAML files as trees of texts: each value as it was written, with its line; anchors and merges work, tags do not.

A tree is visited, never copied: a file whose aliases would expand to billions of values stays as small as it is.
"""

from collections.abc import Iterator
from typing import cast

import attrs
import yaml

from emulator.importing.settings import ConfigurationError, refuse_template
from nodes.fields import shown

YAML_BYTES_MAX = 1024 * 1024
"""Size of the largest file, since the parser reads some 100 kB in a second."""
_VISITS_MAX = 1_000_000
"""Most visits of values of one file: aliases of aliases would lead to billions."""
_MERGE = "<<"


class _Visits:
    """How often values of a file were visited."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._number = 0

    def add(self, number: int) -> None:
        """Count visits.

        Raises:
            ConfigurationError: there were too many.
        """
        self._number += number
        if self._number > _VISITS_MAX:
            raise ConfigurationError(self._source, 0, f"aliases and pods lead to more than {_VISITS_MAX} values")


@attrs.frozen
class YamlValue:
    """A value of a YAML file."""

    node: yaml.Node | None = attrs.field(repr=False)
    """None: there is nothing."""
    source: str
    """The file."""
    visits: _Visits = attrs.field(repr=False, eq=False)

    @property
    def line(self) -> int:
        """Where it begins, from 1."""
        return 0 if self.node is None else cast("int", self.node.start_mark.line) + 1

    @property
    def text(self) -> str:
        """A scalar as it was written, without quotes; empty for what is none."""
        return cast("str", self.node.value) if isinstance(self.node, yaml.ScalarNode) and not self.is_null else ""

    @property
    def is_null(self) -> bool:
        """Whether it is missing or null."""
        return self.node is None or self.node.tag == "tag:yaml.org,2002:null"

    @property
    def is_block(self) -> bool:
        """Whether it is a text with lines of its own, which begin below its key."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.style in ("|", ">")

    def get(self, *keys: str) -> "YamlValue":
        """What stands below keys; nothing if one of them is missing."""
        value, nothing = self, YamlValue(None, self.source, self.visits)
        for key in keys:
            value = next((item for name, item in value.pairs() if name == key), nothing)
        return value

    def pairs(self) -> Iterator[tuple[str, "YamlValue"]]:
        """Key and value of each entry of a mapping, its own before those of merged ones; nothing for what is none.

        Raises:
            ConfigurationError: too many values were visited.
        """
        taken: dict[str, None] = {}
        for name, node in self._entries():
            if name not in taken:
                taken[name] = None
                yield name, YamlValue(node, self.source, self.visits)

    def items(self) -> Iterator["YamlValue"]:
        """The items of a list; nothing for what is none.

        Raises:
            ConfigurationError: too many values were visited.
        """
        if isinstance(self.node, yaml.SequenceNode):
            self.visits.add(len(self.node.value))
            yield from (YamlValue(item, self.source, self.visits) for item in self.node.value)

    def whole(self, default: int) -> int:
        """A whole number that is not negative; the default for what is missing.

        Raises:
            ConfigurationError: it is none.
        """
        if self.is_null:
            return default
        if not self.text.isascii() or not self.text.isdigit() or len(self.text) > 9:
            raise ConfigurationError(self.source, self.line, f"expected a whole number, not {shown(self.text, 40)!r}")
        return int(self.text)

    def _entries(self) -> Iterator[tuple[str, yaml.Node]]:
        waiting = [self.node]
        seen: dict[int, None] = {}
        while waiting:
            node = waiting.pop()
            if not isinstance(node, yaml.MappingNode) or id(node) in seen:
                continue
            seen[id(node)] = None
            self.visits.add(len(node.value) + 1)
            merged: list[yaml.Node] = []
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if key.value == _MERGE:
                    merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
                else:
                    yield key.value, value
            self.visits.add(len(merged))
            waiting += reversed(merged)


def read_yaml(content: bytes, source: str) -> tuple[YamlValue, ...]:
    """The documents of a file.

    Args:
        content: of the file.
        source: its name, for messages.

    Raises:
        ConfigurationError: it is too large, not UTF-8, not YAML, or a template that was not rendered.
    """
    if len(content) > YAML_BYTES_MAX:
        raise ConfigurationError(source, 0, f"expected at most {YAML_BYTES_MAX} bytes of YAML")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(source, 0, f"expected UTF-8: byte {error.start} is not") from None
    refuse_template(text, source, anywhere=False)
    try:
        nodes = [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = 0 if mark is None else mark.line + 1
        raise ConfigurationError(source, line, f"not YAML: {shown(str(error.problem), 200)}") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(source, 0, f"not YAML: {shown(' '.join(str(error).split()), 200)}") from None
    except RecursionError:
        raise ConfigurationError(source, 0, "values are nested too deep") from None
    visits = _Visits(source)
    return tuple(YamlValue(node, source, visits) for node in nodes)
