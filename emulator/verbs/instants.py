"""Times as people say them to a cluster: `30s`, `500ms`, `2m`, and `+30s` for from now."""

import re

from emulator.verbs.verb import VerbError

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def span_ms(text: str) -> int:
    """A length of time; a number alone is seconds.

    Raises:
        VerbError: it is none.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise VerbError(f"expected a time such as 30s, 500ms or 2m, not {text}")
    return round(float(found[1]) * _UNIT_MS[found[2] or "s"])


def instant_ms(text: str, now_ms: int) -> int:
    """An instant since the run began; with a plus, from now.

    Raises:
        VerbError: it is none, or it has passed.
    """
    if text.startswith("+"):
        return now_ms + span_ms(text[1:])
    at_ms = span_ms(text)
    if at_ms < now_ms:
        raise VerbError(f"expected an instant to come: {text} was {(now_ms - at_ms) / 1_000:.3f} s ago")
    return at_ms
