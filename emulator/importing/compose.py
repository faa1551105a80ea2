"""Files of docker-compose: a service whose command or image starts a node of RocketMQ is one."""

import posixpath
import re
from collections.abc import Callable, Iterator

from emulator.importing.property_files import settings_of_content
from emulator.importing.settings import ConfiguredNode, Setting
from emulator.importing.startup import settings_of_environment, startup_of
from emulator.importing.yaml_files import YamlValue

ReadFile = Callable[[str], bytes | None]
"""From a path next to the compose file to its content; None: there is none that may be read."""
_DEFAULT = re.compile(r"\$\{\w+:?-([^}]*)\}")


def is_compose(document: YamlValue) -> bool:
    """Whether a document is a compose file."""
    return not document.get("services").is_null and document.get("kind").is_null


def nodes_of_compose(document: YamlValue, read_file: ReadFile) -> Iterator[ConfiguredNode]:
    """The nodes of RocketMQ in a compose file, in its order.

    Args:
        document: the file.
        read_file: reads a file that a service mounts.

    Raises:
        ConfigurationError: a file that a service mounts is no properties file.
    """
    for name, service in document.get("services").pairs():
        words = [text for key in ("entrypoint", "command") for text in _words(service.get(key))]
        startup = startup_of(service.get("image").text, words, service.source, service.line)
        if startup is None:
            continue
        before, after = settings_of_environment(_environment(service.get("environment")), service.source)
        file = _mounted(service, startup.config_path, read_file) if startup.config_path else ()
        host = service.get("hostname").text or service.get("container_name").text or name
        settings = (*before, *file, *after, *startup.settings)
        yield ConfiguredNode(startup.kind, service.source, service.line, settings, (host,))


def _words(value: YamlValue) -> list[str]:
    return [value.text] if value.text else [item.text for item in value.items()]


def _environment(value: YamlValue) -> Iterator[tuple[str, str, int]]:
    """(name, value, line) of each variable, of a mapping or of a list of `NAME=value`."""
    for name, item in value.pairs():
        yield name, _substituted(item.text), item.line
    for item in value.items():
        name, _, text = item.text.partition("=")
        yield name, _substituted(text), item.line


def _substituted(text: str) -> str:
    """A text with the default of each `${NAME:-default}`."""
    return _DEFAULT.sub(lambda found: found[1], text)


def _mounted(service: YamlValue, path: str, read_file: ReadFile) -> tuple[Setting, ...]:
    """The options of the file that a service mounts at a path; none if it mounts no such file that can be read."""
    for volume in service.get("volumes").items():
        source, target = volume.get("source").text, volume.get("target").text
        if volume.text:
            source, _, rest = _substituted(volume.text).partition(":")
            target = rest.partition(":")[0]
        if path == target or path.startswith(f"{target.rstrip('/')}/"):
            inside = posixpath.relpath(path, target) if path != target else ""
            found = posixpath.normpath(posixpath.join(source, inside))
            content = read_file(found)
            if content is not None:
                return settings_of_content(content, posixpath.join(posixpath.dirname(service.source), found))
    return ()
