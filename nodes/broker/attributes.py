"""Attributes of topics and groups: which there are, and how a request changes them.

A request says with the first letter of a key what it wants: `+` puts, `-` takes away.

Mirrors:
    `org.apache.rocketmq.common.attribute.AttributeUtil`, `org.apache.rocketmq.common.TopicAttributes`.
"""

from collections.abc import Mapping
from types import MappingProxyType

import attrs

_LONG_MAX = 2**63 - 1


class AttributeRefusedError(ValueError):
    """A request cannot be carried out; nothing was changed. Its text is RocketMQ's."""


@attrs.frozen
class OneOf:
    """An attribute with a few possible values."""

    values: tuple[str, ...]
    """In the order in which RocketMQ lists them."""
    changeable: bool

    def verify(self, value: str) -> None:
        """Refuse what is none of the values."""
        if value not in self.values:
            raise AttributeRefusedError(f"value is not in set: [{', '.join(self.values)}]")


@attrs.frozen
class LongRange:
    """An attribute that is a number."""

    least: int
    most: int
    changeable: bool

    def verify(self, value: str) -> None:
        """Refuse what lies outside, and what is no number."""
        try:
            number = int(value)
        except ValueError:
            raise AttributeRefusedError(f'For input string: "{value}"') from None
        if not self.least <= number <= self.most:
            raise AttributeRefusedError(f"value is not in range({self.least}, {self.most})")


Attributes = Mapping[str, OneOf | LongRange]

TOPIC_ATTRIBUTES: Attributes = MappingProxyType(
    {
        "queue.type": OneOf(("SimpleCQ", "BatchCQ"), changeable=False),
        "cleanup.policy": OneOf(("DELETE", "COMPACTION"), changeable=False),
        "message.type": OneOf(("UNSPECIFIED", "TRANSACTION", "FIFO", "MIXED", "DELAY", "NORMAL"), changeable=True),
        "reserve.time": LongRange(-1, _LONG_MAX, changeable=True),
    }
)
GROUP_ATTRIBUTES: Attributes = MappingProxyType({})
"""5.3.3 knows none."""


def alter_current_attributes(
    known: Attributes, current: Mapping[str, str], wanted: Mapping[str, str], *, create: bool
) -> Mapping[str, str]:
    """The attributes after a request.

    Args:
        known: the attributes that there are.
        current: those that topic or group has.
        wanted: key with its sign -> value.
        create: whether topic or group is new, and has nothing to take away.

    Raises:
        AttributeRefusedError: what is wanted cannot be.
    """
    puts: dict[str, str] = {}
    drops: dict[str, None] = {}
    for signed, value in wanted.items():
        if len(signed) < 2:
            raise AttributeRefusedError("kv string format wrong.")
        sign, key = signed[0], signed[1:]
        if key in puts or key in drops:
            raise AttributeRefusedError(f"key duplication. key: {key}")
        _check_sign(sign, key, current, create=create)
        if sign == "+":
            puts[key] = value
        else:
            drops[key] = None
    for key in [*puts, *drops]:
        attribute = known.get(key)
        if attribute is None:
            raise AttributeRefusedError(f"unsupported key: {key}")
        if not create and not attribute.changeable:
            raise AttributeRefusedError(f"attempt to update an unchangeable attribute. key: {key}")
        if key in puts:
            attribute.verify(puts[key])
    return {key: value for key, value in {**current, **puts}.items() if key not in drops}


def _check_sign(sign: str, key: str, current: Mapping[str, str], *, create: bool) -> None:
    if create and sign != "+":
        raise AttributeRefusedError(f"only add attribute is supported while creating topic. key: {key}")
    if sign not in ("+", "-"):
        raise AttributeRefusedError(f"wrong format key: {key}")
    if sign == "-" and key not in current:
        raise AttributeRefusedError(f"attempt to delete a nonexistent key: {key}")
