"""Causes in words, on one line: `cut c1 -> broker-a at 60.0 s (1,377 of 1,411 messages); lose 20 % at 420.0 s (34)`."""

from collections.abc import Sequence
from itertools import combinations

from emulator.analysis.findings.cause_share import RULE, CauseShare
from emulator.analysis.findings.words import amount_words, seconds

NAMED_MIN = 0.05
"""A disturbance with a smaller share is not named."""
_NAMED_MAX = 3
_ALL_OF_IT = 0.95
_TOGETHER = 0.1
"""Shares that exceed 1 by more overlap: for a part both disturbances are needed."""


def named(causes: Sequence[CauseShare]) -> list[CauseShare]:
    """The disturbances that are named, the greatest share first; not rules."""
    return [item for item in causes if item.kind != RULE and item.total >= NAMED_MIN]


def cause_words(causes: Sequence[CauseShare], amount: float, unit: str) -> str:
    """The causes of an amount on one line; without any disturbance the rule of RocketMQ; empty: nothing is known.

    Args:
        causes: of the amount.
        amount: how much.
        unit: of what: messages, queue-seconds.
    """
    found = named(causes)
    if not found:
        rule = next((item.what for item in causes if item.kind == RULE), "")
        return f"no disturbance: {rule}" if rule else ""
    shown = [_with_amount(item, amount, unit, first=place == 0) for place, item in enumerate(found[:_NAMED_MAX])]
    more = [f"{len(found) - _NAMED_MAX} more"] if len(found) > _NAMED_MAX else []
    return f"{'; '.join([*shown, *more])}{_together(found[:_NAMED_MAX])}"


def what_and_when(cause: CauseShare) -> str:
    """`cut c1 -> broker-a at 60.0 s`."""
    return f"{cause.what} at {seconds(cause.start_ns)}"


def _with_amount(cause: CauseShare, amount: float, unit: str, *, first: bool) -> str:
    if cause.total >= _ALL_OF_IT:
        return what_and_when(cause)
    part, whole = amount_words(cause.total * amount), amount_words(amount)
    return f"{what_and_when(cause)} ({f'{part} of {whole} {unit}' if first else part})"


def _together(found: Sequence[CauseShare]) -> str:
    """Whether each of several suffices, or all of them are needed."""
    enough = [item for item in found if item.suffices >= item.share]
    if len(enough) > 1:
        return ", each suffices" if len(enough) == len(found) else f"; {_listed(enough, 'or')} suffices"
    pairs = [pair for pair in combinations(found, 2) if sum(item.share for item in pair) > 1 + _TOGETHER]
    if not pairs:
        return ""
    together = list(dict.fromkeys(item for pair in pairs for item in pair))
    are = "both are" if len(together) == 2 else "all are"
    return f", {are} needed" if len(together) == len(found) else f"; {_listed(together, 'and')} are needed"


def _listed(causes: Sequence[CauseShare], conjunction: str) -> str:
    return f" {conjunction} ".join(item.what for item in causes)
