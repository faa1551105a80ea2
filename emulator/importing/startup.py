"""How a container starts a node of RocketMQ: its command, its arguments and its environment variables."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import attrs

from emulator.importing.settings import ConfigurationError, Setting
from emulator.spec.rocketmq.file_kinds import FileKind

_SCRIPTS: Mapping[str, FileKind] = MappingProxyType(
    {
        "mqbrokercontainer": FileKind.CONTAINER,
        "mqnamesrv": FileKind.NAMESRV,
        "mqcontroller": FileKind.CONTROLLER,
        "mqproxy": FileKind.PROXY,
        "mqbroker": FileKind.BROKER,
        "NamesrvStartup": FileKind.NAMESRV,
        "ControllerStartup": FileKind.CONTROLLER,
        "BrokerContainerStartup": FileKind.CONTAINER,
        "ProxyStartup": FileKind.PROXY,
        "BrokerStartup": FileKind.BROKER,
        "run-namesrv": FileKind.NAMESRV,
        "runbroker": FileKind.BROKER,
    }
)
"""Words of a command -> what it starts; those that contain another one stand before it."""
_IMAGES: Mapping[str, FileKind] = MappingProxyType(
    {
        "rocketmq-broker": FileKind.BROKER,
        "rocketmq-nameserver": FileKind.NAMESRV,
        "rocketmq-namesrv": FileKind.NAMESRV,
        "rocketmq-controller": FileKind.CONTROLLER,
        "rocketmq-proxy": FileKind.PROXY,
    }
)
"""Parts of the name of an image that starts such a node without a command."""
_VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "NAMESRV_ADDR": "namesrvAddr",
        "NAME_SERVER_ADDRESS": "namesrvAddr",
        "NAME_SERVICE_ADDRESS": "namesrvAddr",
        "BROKER_NAME": "brokerName",
        "BROKER_ID": "brokerId",
        "BROKER_CLUSTER_NAME": "brokerClusterName",
        "BROKER_ROLE": "brokerRole",
        "FLUSH_DISK_TYPE": "flushDiskType",
        "DELETE_WHEN": "deleteWhen",
        "FILE_RESERVED_TIME": "fileReservedTime",
        "enableControllerMode": "enableControllerMode",
        "controllerAddr": "controllerAddr",
    }
)
"""Environment variables that RocketMQ, its official images and its operator read -> the option that they set."""
_WRITTEN = ("brokerName", "brokerId", "brokerClusterName", "brokerRole", "enableControllerMode", "controllerAddr")
"""Options that the start script of the operator's image appends to the file."""
DEFAULT_FILES: Mapping[FileKind, str] = MappingProxyType({FileKind.PROXY: "conf/rmq-proxy.json"})
"""Node -> the file below ROCKETMQ_HOME that it reads without a flag."""
_SHELLS = ("sh", "bash", "ash")
_SHELLS_MAX = 3
"""Shells that start one another."""
_CHARS_MAX = 65_536
"""Most characters of a text with its variables: one that names another twice is twice as long, and so on."""
_AROUND = ";&|()'\""
"""What a shell has around words."""
_NAMESRV = ("-n", "--namesrvAddr")
_FILE = ("-c", "--configFile")
_PROXY_FILE = ("-pc", "--proxyConfigPath")
_PROXY_MODE = ("-pm", "--proxyMode")
_BROKER_FILE = ("-bc", "--brokerConfigPath")
_PROXY_FLAGS = (*_PROXY_FILE, *_PROXY_MODE, *_BROKER_FILE)
_ENABLE_PROXY = "--enable-proxy"
_VARIABLE = re.compile(r"\$(?:\((\w+)\)|\{(\w+)\}|(\w+))")
_NODE_WORD = re.compile(r"[\w./-]*(?:mq|run)[\w.-]+|[\w.]*Startup")


@attrs.frozen
class Startup:
    """What a container starts."""

    kind: FileKind
    config_path: str
    """Path of the file behind `-c`; empty: there is none."""
    settings: tuple[Setting, ...]
    """Set by arguments, which take precedence over the file."""
    in_process: "Startup | None" = None
    """The broker of a proxy in local mode, or the proxy of a broker, which share a process."""
    unread: tuple[str, ...] = ()
    """Arguments that no script reads."""
    script: str = ""


def startup_of(image: str, words: Sequence[str], source: str, line: int) -> Startup | None:
    """What a container starts; None: no node of RocketMQ.

    Args:
        image: its image.
        words: command and arguments.
        source: the file, for places.
        line: of the container in it.
    """
    split = _split(words)
    found = next(((at, kind) for at, word in enumerate(split) if (kind := _kind_of(word)) is not None), None)
    if found is None:
        kind = next((kind for part, kind in _IMAGES.items() if part in image), None)
        return None if kind is None or split else Startup(kind, "", ())
    at, kind = found
    arguments = _until_next_command(split[at + 1 :])
    address = _behind(arguments, *_NAMESRV)
    given = (Setting("namesrvAddr", address, source, line, "-n"),) if address else ()
    unread, script = tuple(_unread(arguments, kind)), posixpath.basename(split[at])
    path = _behind(arguments, *(_PROXY_FILE if kind is FileKind.PROXY else _FILE))
    if kind is FileKind.PROXY and _behind(arguments, *_PROXY_MODE).lower() == "local":
        broker = Startup(FileKind.BROKER, _behind(arguments, *_BROKER_FILE), given)
        return Startup(kind, path, given, broker, unread, script)
    if kind is FileKind.BROKER and _ENABLE_PROXY in arguments:
        proxy = Startup(FileKind.PROXY, _behind(arguments, *_PROXY_FILE), given)
        return Startup(kind, path, given, proxy, unread, script)
    return Startup(kind, path, given, None, unread, script)


def settings_of_environment(
    variables: Iterable[tuple[str, str, int]], source: str
) -> tuple[tuple[Setting, ...], tuple[Setting, ...]]:
    """The options that environment variables set.

    Args:
        variables: (name, value, line) of each.
        source: the file, for places.

    Returns:
        Those that a configuration file replaces; and those that a start script writes behind the lines of the file.
    """
    known = [variable for variable in variables if variable[0] in _VARIABLES]
    found = [Setting(_VARIABLES[name], text, source, line, name) for name, text, line in known]
    number = next((setting for setting in found if setting.given_as == "BROKER_ID"), None)
    if number is not None and number.value.strip() not in ("", "0"):
        found.append(Setting("brokerRole", "SLAVE", source, number.line, "BROKER_ID"))
    written = [setting for setting in found if setting.name in _WRITTEN]
    return tuple(setting for setting in found if setting.name not in _WRITTEN), tuple(written)


def in_process_note(kind: FileKind) -> str:
    """What is emulated of the second node of a process."""
    own = "a process of its own, which lives when the other dies"
    if kind is FileKind.PROXY:
        return f"it runs in the process of the broker, in local mode, and is emulated in cluster mode: {own}"
    return f"it runs in the process of the proxy, and is emulated as {own}"


def sets_nothing(name: str) -> bool:
    """Whether RocketMQ reads no option from an environment variable."""
    return name not in _VARIABLES


def with_variables(text: str, variables: Mapping[str, str], source: str, line: int) -> str:
    """A text with the values of the variables that are known in place of `$(NAME)`, `${NAME}` and `$NAME`.

    Raises:
        ConfigurationError: it would become too long.
    """
    if "$" not in text:
        return text
    names = (found[1] or found[2] or found[3] for found in _VARIABLE.finditer(text))
    length = len(text)
    for name in names:
        length += len(variables.get(name, ""))
        if length > _CHARS_MAX:
            problem = f"expected at most {_CHARS_MAX} characters with the values of its variables"
            raise ConfigurationError(source, line, problem)
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2] or found[3], found[0]), text)


def _split(words: Sequence[str]) -> list[str]:
    """The words of a command; those of a text for a shell one by one, and of a text in such a text."""
    found = list(words)
    for _ in range(_SHELLS_MAX):
        found = [part for word in found for part in _parts(word)]
    return [word.strip(_AROUND) for word in found]


def _parts(word: str) -> list[str]:
    if not any(map(str.isspace, word)):
        return [word]
    try:
        return shlex.split(word, comments=False)
    except ValueError:  # an open quote
        return word.split()


def _kind_of(word: str) -> FileKind | None:
    if not _NODE_WORD.fullmatch(word) or word in _SHELLS:
        return None
    return next((kind for script, kind in _SCRIPTS.items() if script in word), None)


def _until_next_command(words: Sequence[str]) -> Sequence[str]:
    """The words before what a shell does next."""
    end = next((at for at, word in enumerate(words) if not word or word.startswith((">", "2>", "<"))), len(words))
    return words[:end]


def _unread(words: Sequence[str], kind: FileKind) -> Iterator[str]:
    has_proxy = kind is FileKind.PROXY or _ENABLE_PROXY in words
    known = (*_NAMESRV, *(_FILE if kind is not FileKind.PROXY else ()), *(_PROXY_FLAGS if has_proxy else ()))
    before = ""
    for word in words:
        if word not in (*known, _ENABLE_PROXY) and before not in known:
            yield word
        before = word


def _behind(words: Sequence[str], *flags: str) -> str:
    return next((following for word, following in pairwise(words) if word in flags), "")
