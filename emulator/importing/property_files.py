"""Properties files and JSON files of RocketMQ: their options, and what kind of node they are for."""

import json
import re
from collections.abc import Sequence

from emulator.importing.settings import ConfigurationError, ConfiguredNode, Setting, refuse_template
from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import options_by_name
from emulator.spec.tables.bounds import FILE_BYTES_MAX
from nodes.config.java_properties import MalformedPropertiesError, Property, read_pairs
from nodes.fields import shown


class BadPropertiesError(ValueError):
    """A text is no properties file."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        """From 1."""


def read_properties(content: bytes) -> tuple[Property, ...]:
    r"""All pairs of a file in its order; of equal names the last one counts.

    Args:
        content: of the file; Java takes each byte for a character of ISO 8859-1.

    Raises:
        BadPropertiesError: Java refuses it: a `\u` has no four hexadecimal digits behind it.
    """
    try:
        return tuple(read_pairs(content.decode("iso-8859-1")))
    except MalformedPropertiesError as error:
        raise BadPropertiesError(error.line, "expected four hexadecimal digits behind \\u") from None


OPTIONS_MAX = 10_000
"""Most options of one file."""
_JSON_BYTES_MAX = 256 * 1024
"""Size of the largest JSON file; that of a proxy has a hundred options."""
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1b\x7f]")
_ONLY = {
    FileKind.CONTAINER: ("brokerConfigPaths",),
    FileKind.CLIENT: ("consumerGroup", "producerGroup"),
    FileKind.NAMESRV: ("enableControllerInNamesrv",),
}
"""Options that settle the kind of a file."""


def settings_of_properties(content: bytes, source: str, first_line: int = 1) -> tuple[Setting, ...]:
    """The options of a properties file.

    Args:
        content: of the file, or of a part of another file.
        source: name of the file, for places.
        first_line: line of the file on which the content begins.

    Raises:
        ConfigurationError: it is no properties file.
    """
    refuse_template(content.decode("iso-8859-1"), source, anywhere=True)
    binary = _BINARY.search(content)
    if binary is not None:
        problem = f"expected a properties file, lines of name=value: byte {binary.start()} is {binary[0][0]:#04x}"
        raise ConfigurationError(source, 0, problem)
    try:
        found = read_properties(content)
    except BadPropertiesError as error:
        raise ConfigurationError(source, first_line + error.line - 1, str(error)) from None
    if len(found) > OPTIONS_MAX:
        raise ConfigurationError(source, 0, f"expected at most {OPTIONS_MAX} options")
    return tuple(Setting(item.name, item.value, source, first_line + item.line - 1) for item in found)


def read_properties_file(content: bytes, source: str, kind: FileKind | None) -> ConfiguredNode:
    """The node that a properties file configures.

    Args:
        content: of the file.
        source: its name, for messages.
        kind: of the node; None: the options show it.

    Raises:
        ConfigurationError: it is no properties file, or has no option of RocketMQ.
    """
    if len(content) > FILE_BYTES_MAX:
        raise ConfigurationError(source, 0, f"expected at most {FILE_BYTES_MAX} bytes")
    settings = settings_of_properties(content, source)
    return ConfiguredNode(_kind_of(settings, source) if kind is None else kind, source, 0, settings)


def _kind_of(settings: Sequence[Setting], source: str) -> FileKind:
    names = list(dict.fromkeys(setting.name for setting in settings))
    for kind, only in _ONLY.items():
        if any(name in only for name in names):
            return kind
    kinds = [kind for kind in FileKind if kind is not FileKind.PROXY]
    known = {kind: sum(name in options_by_name(kind) for name in names) for kind in kinds}
    most = max(known.values())
    if not most:
        first = f" such as {shown(names[0], 40)}" if names else ""
        problem = f"expected options of RocketMQ, and none of the {len(names)}{first} is; --kind says what it is for"
        raise ConfigurationError(source, 0, problem)
    found = [kind for kind in kinds if known[kind] == most]
    if len(found) > 1:
        problem = f"may be for a {' or a '.join(found)}: --kind says which"
        raise ConfigurationError(source, 0, problem)
    return found[0]


def read_json_file(content: bytes, source: str) -> ConfiguredNode:
    """The proxy that a JSON file configures.

    Raises:
        ConfigurationError: it is no JSON object of options.
    """
    if len(content) > _JSON_BYTES_MAX:
        raise ConfigurationError(source, 0, f"expected at most {_JSON_BYTES_MAX} bytes")
    return ConfiguredNode(FileKind.PROXY, source, 0, settings_of_json(_decoded(content, source), source))


def settings_of_content(content: bytes, source: str, first_line: int = 1) -> tuple[Setting, ...]:
    """The options of a properties file, or of a JSON file as proxies have it.

    Args:
        content: of the file, or of a part of another file.
        source: name of the file, for places.
        first_line: line of the file on which the content begins.

    Raises:
        ConfigurationError: it is neither.
    """
    if not content.lstrip().startswith(b"{"):
        return settings_of_properties(content, source, first_line)
    return settings_of_json(_decoded(content, source), source, first_line)


def _decoded(content: bytes, source: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(source, 0, f"expected UTF-8: byte {error.start} is not") from None


def settings_of_json(text: str, source: str, first_line: int = 1) -> tuple[Setting, ...]:
    """The options of a JSON object.

    Args:
        text: of the file, or of a part of another file.
        source: name of the file, for places.
        first_line: line of the file on which the text begins.

    Raises:
        ConfigurationError: it is no JSON object of options.
    """
    refuse_template(text, source, anywhere=True)
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(source, first_line + error.lineno - 1, f"not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise ConfigurationError(source, 0, f"not JSON: {shown(str(error), 200)}") from None
    if not isinstance(values, dict):
        raise ConfigurationError(source, first_line, "expected a JSON object of options")
    if len(values) > OPTIONS_MAX:
        raise ConfigurationError(source, 0, f"expected at most {OPTIONS_MAX} options")
    return tuple(
        Setting(
            name, value if isinstance(value, str) else json.dumps(value), source, first_line + _lines_before(text, name)
        )
        for name, value in values.items()
    )


def _lines_before(text: str, name: str) -> int:
    """Lines before the one with the name of an option."""
    return text.count("\n", 0, max(0, text.find(json.dumps(name, ensure_ascii=False))))
