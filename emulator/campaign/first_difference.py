"""Where two mappings of plain values first differ."""

from collections.abc import Mapping
from typing import Any

from nodes.fields import quoted


def difference(
    there: Mapping[str, Any], here: Mapping[str, Any], within: str = "", names: tuple[str, str] = ("there", "here")
) -> str:
    """Where two mappings first differ, `network.delay_ms is 2 there and 3 here`; empty if they do not.

    Args:
        there: one of them.
        here: the other one.
        within: path of both.
        names: what to call them.
    """
    for key in dict.fromkeys((*there, *here)):
        at = f"{within}.{key}" if within else key
        if key not in here or key not in there:
            return f"{at} is only {names[0] if key in there else names[1]}"
        item, other = there[key], here[key]
        if isinstance(item, list) and isinstance(other, list):
            item, other = _numbered(item), _numbered(other)
        if isinstance(item, Mapping) and isinstance(other, Mapping):
            found = difference(item, other, at, names)
            if found:
                return found
        elif item != other:
            return f"{at} is {quoted(item)} {names[0]} and {quoted(other)} {names[1]}"
    return ""


def _numbered(items: list[Any]) -> dict[str, Any]:
    return {str(number): item for number, item in enumerate(items)}
