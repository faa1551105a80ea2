"""Changes of attributes as a text, `+message.type=FIFO,-cleanup.policy`, and as a mapping.

Mirrors:
    `org.apache.rocketmq.common.attribute.AttributeParser`.
"""

from collections.abc import Mapping

from nodes.protocol.java import hash_ordered


def parse_to_map(text: str) -> dict[str, str]:
    """Mapping key with its sign -> value, which is empty where the key is removed; in the order of a hash map."""
    pairs = (entry.partition("=") for entry in text.split(",") if entry)
    values = {key: value for key, _, value in pairs}
    return {key: values[key] for key in hash_ordered(values)}


def parse_to_string(attributes: Mapping[str, str]) -> str:
    """The text of which `parse_to_map` makes the same mapping."""
    return ",".join(f"{key}={value}" if value else key for key, value in attributes.items())
