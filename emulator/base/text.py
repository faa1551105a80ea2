"""Texts for people: shortened values, and messages that suggest a known name."""

from collections.abc import Sequence
from difflib import get_close_matches

from nodes.fields import SHOWN_MOST, shown

_LIST_MOST = 400
"""Most characters of a list of known names."""
_COMPARED_MOST = 1_000
"""Most known names that are compared with a wrong one, which takes a millisecond for some ten."""


def shortened(text: str, characters_max: int) -> str:
    """The text itself, or its beginning and an ellipsis if it has more characters."""
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def shown_ends(text: str) -> str:
    """A text for a message: the middle of a long one is left out visibly."""
    if len(text) <= 3 * SHOWN_MOST:
        return shown(text, 3 * SHOWN_MOST)
    return f"{shown(text[:SHOWN_MOST])}…{shown(text[-SHOWN_MOST:])}"


def nearest(what: str, wrong: str, known: Sequence[str]) -> str:
    """A message about an unknown name: `there is no node brokr-a; did you mean broker-a?`."""
    near = alike(wrong, known, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {listed(known) or 'none'}"
    return f"there is no {what} {shown(wrong)}; {hint}"


def alike(wrong: str, known: Sequence[str], most: int) -> list[str]:
    """The known names that are most like a wrong one."""
    return get_close_matches(shown(wrong), known[:_COMPARED_MOST], n=most)


def listed(names: Sequence[str]) -> str:
    """Names as a list; a long list is shortened."""
    return shortened(", ".join(names), _LIST_MOST)
