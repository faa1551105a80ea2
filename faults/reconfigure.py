"""Restarts with other options: of nodes at once, and of one after the other as in an upgrade."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self

import attrs

from faults.disturbance import IN_LIVES, Disturbance
from faults.fault import Needs
from faults.process import NodeFault
from faults.scope import NodeScope
from faults.words import Wording, Words, WordsError, duration_ms, is_whole
from nodes.fields import TEXT, checked, choice, shown, whole
from nodes.secret import SECRET_OPTIONS, OptionsRule, Secret, mentions_secret, with_secrets

Value = bool | int | str | Secret
_WITH = re.compile(r"(.+?)\s+with\s+\{([^{}]*)\}")
_ROLLING = re.compile(r"(.+?)\s+one\s+every\s+([^\s,]+)(?:\s*,?\s+([a-z]+ [a-z]+))?")


def _is_options(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        TEXT.holds(name) and isinstance(item, Value) and (not isinstance(item, str) or not item or TEXT.holds(item))
        for name, item in value.items()
    )


def _options() -> Any:
    rule = OptionsRule("a table of options", _is_options)
    return checked(rule, attrs.Factory(dict), converter=with_secrets)


class Order(StrEnum):
    """Which nodes of a rolling restart come first; within each part they go by name."""

    SLAVES_FIRST = "slaves first"
    MASTERS_FIRST = "masters first"
    BY_NAME = "by name"


@attrs.frozen
class Reconfigure(NodeFault):
    """Processes shut down as on SIGTERM, and new ones start with other options, which stay; healing undoes nothing."""

    kind: ClassVar[str] = "reconfigure"
    disturbance: ClassVar[Disturbance] = IN_LIVES
    wording: ClassVar[Wording] = Wording(
        "restart", "NODES [with {OPTION = VALUE, ...}]", "end a process in good order, and begin a new one"
    )
    needs: ClassVar[Needs | None] = Needs.OPTIONS
    options: Mapping[str, Value] = _options()
    """Mapping option, or `release` -> value; of the role of the nodes."""

    @property
    def hits_only_at_begin(self) -> bool:
        """Options count from the next start on; without any it is a signal."""
        return not self.options

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`restart NODES [with {OPTION = VALUE, ...}]`."""
        nodes, options = _nodes_and_options(cls.wording, " ".join(words))
        return cls(NodeScope(nodes), options)

    def describe(self) -> str:
        """For people: `restart broker-a with {slaveReadEnable = true}`."""
        return f"restart {self.scope.describe()}{_with(self.options)}"


@attrs.frozen
class Upgrade(NodeFault):
    """The same, one node after the other; healed, it goes no further and undoes nothing."""

    kind: ClassVar[str] = "upgrade"
    disturbance: ClassVar[Disturbance] = IN_LIVES
    wording: ClassVar[Wording] = Wording(
        "upgrade",
        "NODES [with {OPTION = VALUE, ...}] one every T [slaves first|masters first|by name]",
        "restart nodes with other options, one after the other",
        4,
    )
    needs: ClassVar[Needs | None] = Needs.OPTIONS
    options: Mapping[str, Value] = _options()
    """As of `Reconfigure`."""
    apart_ms: int = whole(60_000, unit="milliseconds", minimum=1)
    """From the restart of a node to that of the next; a node that takes longer to shut down delays it."""
    order: Order = choice(Order, Order.BY_NAME)
    """Which nodes start again first."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`upgrade NODES [with {OPTION = VALUE, ...}] one every T [ORDER]`."""
        found = _ROLLING.fullmatch(" ".join(words))
        if found is None:
            raise cls.wording.mistake()
        nodes, options = _nodes_and_options(cls.wording, found[1])
        order: Any = Order.BY_NAME if found[3] is None else found[3]
        return cls(NodeScope(nodes), options, duration_ms(found[2]), order)

    def describe(self) -> str:
        """For people: `upgrade brokers with {release = 5.3.3}, one every 60000 ms, slaves first`."""
        return f"upgrade {self.scope.describe()}{_with(self.options)}, one every {self.apart_ms} ms, {self.order}"


def options_text(options: Mapping[str, Value]) -> str:
    """Options as people write them between braces: `slaveReadEnable = true, totalReplicas = 2`."""
    return ", ".join(f"{name} = {_text(value)}" for name, value in options.items())


def _with(options: Mapping[str, Value]) -> str:
    return f" with {{{options_text(options)}}}" if options else ""


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nodes_and_options(wording: Wording, text: str) -> tuple[str, dict[str, Value]]:
    found = _WITH.fullmatch(text)
    if found is None:
        if "{" in text or "}" in text or text.endswith(" with") or mentions_secret(text):
            raise wording.mistake()
        return text, {}
    options: dict[str, Value] = {}
    for item in found[2].split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not (name and equals and value):
            raise WordsError(f"expected OPTION = VALUE between the braces, not {shown(item.strip()) or 'nothing'}")
        if name in options:
            raise WordsError(f"expected {shown(name)} once")
        options[name] = Secret.of(value.strip("\"'")) if name in SECRET_OPTIONS else _value(value)
    return found[1], options


def _value(text: str) -> Value:
    text = text.strip("\"'")
    if text in ("true", "false"):
        return text == "true"
    return int(text) if is_whole(text) else text
