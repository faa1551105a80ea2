"""What a broker prints of its configuration next to its emulated options: every field of RocketMQ's classes.

Mirrors:
    `org.apache.rocketmq.remoting.Configuration#getAllConfigsFormatString`.
"""

import math
from collections.abc import Mapping
from functools import cache

from emulator.spec.rocketmq.file_kinds import FileKind
from emulator.spec.rocketmq.known_options import CLASSES_OF, fields_of
from nodes.config import BrokerConfig, options

_NULL = "null"
_CONSUMERS, _ERROR_PERCENT = "expectConsumerNumUseFilter", "maxErrorRateOfBloomFilter"
_PRINTED = tuple(of for of in CLASSES_OF[FileKind.BROKER] if of != "AuthConfig")

_DIGITS = 10
"""Of the largest int."""


def printed_fields(given: Mapping[str, str]) -> Mapping[str, str]:
    """Mapping field -> value for all fields that have one, but for those whose default depends on the machine.

    Args:
        given: what the broker's file sets of what is not emulated, and of what RocketMQ does not know.
    """
    return _as_started({**_defaults(), **given}) if given else _defaults()


@cache
def _defaults() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for of in _PRINTED:
        for field in fields_of(of):
            has_value = field["type"] and not field["depends_on"] and field["default"] != _NULL
            if has_value and field["field"] not in options(BrokerConfig):
                found[field["field"]] = field["default"]
    return _as_started(found)


def _as_started(fields: Mapping[str, str]) -> Mapping[str, str]:
    """The fields with what a broker computes when it starts: the bits of the filter of each message.

    Mirrors:
        `org.apache.rocketmq.broker.filter.ConsumerFilterManager`, `org.apache.rocketmq.filter.util.BloomFilter`.
    """
    texts = fields[_CONSUMERS], fields[_ERROR_PERCENT]
    if not all(text.isascii() and text.isdigit() and len(text) < _DIGITS for text in texts):
        return fields
    consumers, error_percent = map(int, texts)
    if consumers < 1 or not 1 <= error_percent < 100:
        return fields  # the broker does not start
    bits = math.ceil(consumers * math.log2(100 / error_percent) * math.log2(math.e))
    return {**fields, "bitMapLengthConsumeQueueExt": str(8 * math.ceil(bits / 8))}
