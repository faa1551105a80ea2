"""Texts for people: shortened values, and messages that suggest a known name."""

from collections.abc import Sequence
from difflib import get_close_matches


def shortened(text: str, characters_max: int) -> str:
    """The text itself, or its beginning and an ellipsis if it has more characters."""
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def nearest(what: str, wrong: str, known: Sequence[str]) -> str:
    """A message about an unknown name: `there is no node brokr-a; did you mean broker-a?`."""
    near = get_close_matches(wrong, known, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known) or 'none'}"
    return f"there is no {what} {wrong}; {hint}"
