"""What a broker prints of its configuration next to the options that are emulated.

Mirrors:
    `org.apache.rocketmq.remoting.Configuration#getAllConfigsFormatString`.
"""

import math
from collections.abc import Mapping

_CONSUMERS, _ERROR_PERCENT = "expectConsumerNumUseFilter", "maxErrorRateOfBloomFilter"
_BITS = "bitMapLengthConsumeQueueExt"
_DIGITS = 10
"""Of the largest int."""


def as_started(fields: Mapping[str, str]) -> Mapping[str, str]:
    """The fields with what a broker computes when it starts: the bits of the filter of each message.

    Args:
        fields: Mapping field -> value, of the fields of RocketMQ's classes that are not emulated, and of what the
            broker's file sets in addition.

    Mirrors:
        `org.apache.rocketmq.broker.filter.ConsumerFilterManager`, `org.apache.rocketmq.filter.util.BloomFilter`.
    """
    texts = fields.get(_CONSUMERS, ""), fields.get(_ERROR_PERCENT, "")
    if not all(text.isascii() and text.isdigit() and len(text) < _DIGITS for text in texts):
        return fields
    consumers, error_percent = map(int, texts)
    if consumers < 1 or not 1 <= error_percent < 100:
        return fields  # the broker does not start
    bits = math.ceil(consumers * math.log2(100 / error_percent) * math.log2(math.e))
    return {**fields, _BITS: str(8 * math.ceil(bits / 8))}
