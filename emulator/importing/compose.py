"""Files of docker-compose: a service whose command or image starts a node of RocketMQ is one."""

import posixpath
import re
from collections.abc import Callable, Iterator

import attrs

from emulator.importing import not_taken
from emulator.importing.property_files import settings_of_content
from emulator.importing.settings import ConfigurationError, ConfiguredNode, PublishedPort, Setting
from emulator.importing.startup import (
    DEFAULT_FILES,
    Startup,
    in_process_note,
    settings_of_environment,
    startup_of,
)
from emulator.importing.yaml_files import YamlValue
from emulator.spec.tables.bounds import BROKERS_MAX

ReadFile = Callable[[str], bytes | None]
"""From a path next to the compose file to its content; None: there is none that may be read."""
_NETWORK = "docker"
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
        if startup is not None:
            host = service.get("hostname").text or service.get("container_name").text or name
            for number, part in enumerate(item for item in (startup, startup.in_process) if item is not None):
                node = _node(service, part, _hosts(service, host), read_file, is_second=bool(number))
                on_host = service.get("network_mode").text == "host"
                ports = () if on_host else tuple(_ports(service))
                yield attrs.evolve(node, network=_NETWORK, is_on_host=on_host, ports=ports)


def _node(
    service: YamlValue, startup: Startup, hosts: tuple[str, ...], read_file: ReadFile, *, is_second: bool
) -> ConfiguredNode:
    """A node of a service; the second one is in the process of the first."""
    variables = list(_environment(service.get("environment")))
    before, after = settings_of_environment(variables, service.source)
    path = startup.config_path or DEFAULT_FILES.get(startup.kind, "")
    file = _mounted(service, path, read_file) if path else ()
    settings = (*before, *file, *after, *startup.settings)
    node = ConfiguredNode(startup.kind, service.source, service.line, settings, hosts)
    if is_second:
        return attrs.evolve(node, notes=(in_process_note(startup.kind),))
    notes = (
        *not_taken.of_container(
            node, startup, service.get("image").text, _ports(service), (name for name, _, _ in variables)
        ),
        *not_taken.of_service(service),
    )
    return attrs.evolve(node, notes=notes)


def _hosts(service: YamlValue, host: str) -> tuple[str, ...]:
    """The host of each replica."""
    wanted = service.get("deploy", "replicas")
    wanted = service.get("scale") if wanted.is_null else wanted
    replicas = wanted.whole(1)
    if replicas > BROKERS_MAX:
        raise ConfigurationError(wanted.source, wanted.line, f"expected at most {BROKERS_MAX} replicas")
    return (host,) if replicas == 1 else tuple(f"{host}-{number}" for number in range(1, replicas + 1))


def _ports(service: YamlValue) -> Iterator[PublishedPort]:
    """Ports that are published under a number: `10921:10911`, `127.0.0.1:10921:10911/tcp`, or with keys."""
    for item in service.get("ports").items():
        published, target = item.get("published").text, item.get("target").text
        if item.text:
            outside, _, target = _substituted(item.text).partition("/")[0].rpartition(":")
            published = outside.rpartition(":")[2]
        if published and target:
            yield PublishedPort(published, target, "ports")


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


def _inside(path: str, target: str) -> str | None:
    """Where a file is below what is mounted at a target; a relative path is below a folder that is not known."""
    if not path.startswith("/"):
        path = posixpath.normpath(path).lstrip("./")
        parts = range(path.count("/") + 1)
        ends = (path.rsplit("/", number) for number in parts)
        return next(("/".join(rest) for end, *rest in ends if f"/{target.strip('/')}".endswith(f"/{end}")), None)
    if path == target:
        return ""
    return posixpath.relpath(path, target) if path.startswith(f"{target.rstrip('/')}/") else None


def _mounted(service: YamlValue, path: str, read_file: ReadFile) -> tuple[Setting, ...]:
    """The options of the file that a service mounts at a path; none if it mounts no such file that can be read."""
    for volume in service.get("volumes").items():
        source, target = volume.get("source").text, volume.get("target").text
        if volume.text:
            source, _, rest = _substituted(volume.text).partition(":")
            target = rest.partition(":")[0]
        inside = _inside(path, target)
        if inside is not None:
            found = posixpath.normpath(posixpath.join(source, inside))
            content = read_file(found)
            if content is not None:
                return settings_of_content(content, posixpath.join(posixpath.dirname(service.source), found))
    return ()
