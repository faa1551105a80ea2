"""Texts for people: shortened values, and messages that suggest a known name."""

from collections.abc import Sequence
from difflib import get_close_matches

from nodes.fields import SHOWN_MAX, shown

_LIST_MAX = 400
"""Most characters of a list of known names."""
_COMPARED_MAX = 1_000
"""Most known names that are compared with a wrong one, which takes a millisecond for some ten."""


def shortened(text: str, characters_max: int) -> str:
    """The text itself, or its beginning and an ellipsis if it has more characters."""
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def shown_ends(text: str) -> str:
    """A text for a message: the middle of a long one is left out visibly."""
    if len(text) <= 3 * SHOWN_MAX:
        return shown(text, 3 * SHOWN_MAX)
    return f"{shown(text[:SHOWN_MAX])}…{shown(text[-SHOWN_MAX:])}"


def nearest(subject: str, wrong: str, known: Sequence[str]) -> str:
    """A message about an unknown name: `there is no node brokr-a; did you mean broker-a?`."""
    near = alike(wrong, known, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {listed(known) or 'none'}"
    return f"there is no {subject} {shown(wrong)}; {hint}"


def alike(wrong: str, known: Sequence[str], maximum: int) -> list[str]:
    """The known names that are most like a wrong one."""
    return get_close_matches(shown(wrong), known[:_COMPARED_MAX], n=maximum)


def listed(names: Sequence[str]) -> str:
    """Names as a list; a long list is shortened."""
    return shortened(", ".join(names), _LIST_MAX)
