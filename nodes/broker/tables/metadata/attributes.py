"""Attributes of topics and groups: the known ones, and how a request changes them.

In a request the first letter of a key is the operation: `+` sets, `-` removes.

Mirrors:
    `org.apache.rocketmq.common.attribute.AttributeUtil`, `org.apache.rocketmq.common.TopicAttributes`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.values import frozen

_LONG_MAX = 2**63 - 1


class AttributeRefusedError(ValueError):
    """A change of attributes is not allowed; nothing was changed. The text is RocketMQ's."""


@frozen
class OneOf:
    """An attribute with a fixed set of values."""

    values: tuple[str, ...]
    """In RocketMQ's order."""
    changeable: bool

    def verify(self, value: str) -> None:
        """Refuse any other value."""
        if value not in self.values:
            raise AttributeRefusedError(f"value is not in set: [{', '.join(self.values)}]")


@frozen
class LongRange:
    """An attribute that is a number."""

    minimum: int
    maximum: int
    changeable: bool

    def verify(self, value: str) -> None:
        """Refuse a number out of range, and anything that is no number."""
        try:
            number = int(value)
        except ValueError:
            raise AttributeRefusedError(f'For input string: "{value}"') from None
        if not self.minimum <= number <= self.maximum:
            raise AttributeRefusedError(f"value is not in range({self.minimum}, {self.maximum})")


Attributes = Mapping[str, OneOf | LongRange]
CLEANUP_POLICY = "cleanup.policy"
_COMPACTION = "COMPACTION"

TOPIC_ATTRIBUTES: Attributes = MappingProxyType(
    {
        "queue.type": OneOf(("SimpleCQ", "BatchCQ"), changeable=False),
        CLEANUP_POLICY: OneOf(("DELETE", _COMPACTION), changeable=False),
        "message.type": OneOf(("UNSPECIFIED", "TRANSACTION", "FIFO", "MIXED", "DELAY", "NORMAL"), changeable=True),
        "reserve.time": LongRange(-1, _LONG_MAX, changeable=True),
    }
)
GROUP_ATTRIBUTES: Attributes = MappingProxyType({})
"""5.3.3 has none."""


def is_compaction(attributes: Mapping[str, str]) -> bool:
    """Whether a topic with these attributes retains the last message of each key alone.

    Mirrors:
        `org.apache.rocketmq.common.utils.CleanupPolicyUtils#isCompaction`.
    """
    return attributes.get(CLEANUP_POLICY) == _COMPACTION


def alter_current_attributes(
    known: Attributes, current: Mapping[str, str], wanted: Mapping[str, str], *, create: bool
) -> Mapping[str, str]:
    """The attributes after a request.

    Args:
        known: all attributes that exist.
        current: the attributes of the topic or group.
        wanted: key with sign -> value.
        create: whether the topic or group is new, so that nothing can be removed.

    Raises:
        AttributeRefusedError: the change is not allowed.
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
