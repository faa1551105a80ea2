"""Durations, counts and names of queues, as reports print them."""

from collections.abc import Iterable
from typing import Any

from emulator.history.rows.queues import GroupQueue
from nodes.units import NS_PER_S


def seconds(duration_ns: int, *, censored: bool = False) -> str:
    """A duration or an instant for people: `61.3 s`; one that had not ended is `> 61.3 s`."""
    text = f"{duration_ns / 1e9:.1f} s"
    if 0 < duration_ns < 50_000_000:
        text = f"{duration_ns / 1e6:.1f} ms"
    return f"> {text}" if censored else text


def exact_seconds(t_ns: int) -> str:
    """`31.204 s`."""
    return f"{t_ns / NS_PER_S:.3f} s"


def count(number: int, subject: str) -> str:
    """`1 queue`, `3 queues`."""
    return f"{number} {subject}" if number == 1 else f"{number} {subject}s"


def amount_words(amount: float, unit: str = "") -> str:
    """`2,720`, `0.4`, `1 message`.

    Args:
        amount: the number.
        unit: of several; empty: the number alone.
    """
    number = f"{amount:,.0f}" if amount >= 10 or amount == round(amount) else f"{amount:.1f}"
    return f"{number} {unit.removesuffix('s') if amount == 1 else unit}".rstrip()


def queue_words(queue: GroupQueue) -> str:
    """`queue orders/broker-a/3 of billing`."""
    return f"queue {queue.name} of {queue.group}"


def span_words(row: Any) -> str:
    """`from 31.204 s to 60.000 s`, and whether that is the end of the run."""
    ends = ", the end of the run" if getattr(row, "censored", False) else ""
    return f"from {exact_seconds(row.start_ns)} to {exact_seconds(row.end_ns)}{ends}"


def queue_seconds(rows: Iterable[Any]) -> str:
    """The sum of the lengths of findings about queues: `61.3 queue-seconds`."""
    return f"{sum(row.end_ns - row.start_ns for row in rows) / 1e9:.1f} queue-seconds"
