"""Delta debugging: the smallest list of items with which something still fails.

The algorithm ddmin of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on
Software Engineering 28 (2002): try each part of the list, then the list without each part, then smaller parts.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

Fails = Callable[[Sequence[int]], bool]
"""Whether it still fails with these items only; they are given by position, in order."""


def minimised(items: Sequence[int], fails: Fails, *, likely: Sequence[int] = (), least: int = 0) -> tuple[int, ...]:
    """A part of the items with which it fails, and of which no single item can be left out.

    Args:
        items: positions with all of which it fails.
        fails: is never asked about more items than there are.
        likely: the items that probably matter, the likeliest first: the first 1, 2, 4, ... of them are tried alone
            before anything else, and they are left out last.
        least: fewest items to keep.
    """
    kept = [*(item for item in items if item not in likely), *(item for item in items if item in likely)]

    def fails_with(some: Sequence[int]) -> bool:
        return len(some) >= least and fails(sorted(some))

    if kept and fails_with([]):
        return ()
    kept = next((guess for guess in _guesses(likely) if len(guess) < len(kept) and fails_with(guess)), kept)
    parts = 2
    while len(kept) > 1:
        parts = min(parts, len(kept))
        smaller = next((some for some in _candidates(kept, parts) if fails_with(some)), None)
        if smaller is not None:
            # As many parts as before, of the same size, are in a list from which one was taken.
            parts = 2 if len(smaller) <= -(-len(kept) // parts) else max(parts - 1, 2)
            kept = smaller
        elif parts == len(kept):
            break
        else:
            parts *= 2
    return tuple(sorted(kept))


def _guesses(likely: Sequence[int]) -> Iterator[list[int]]:
    size = 1
    while size < 2 * len(likely):
        yield [*likely[:size]]
        size *= 2


def _candidates(kept: list[int], parts: int) -> Iterator[list[int]]:
    """Each part alone, then the list without each part."""
    bounds = [len(kept) * number // parts for number in range(parts + 1)]
    spans = [*pairwise(bounds)]
    yield from (kept[begin:end] for begin, end in spans)
    if parts > 2:  # of two parts, each is what the other leaves
        yield from (kept[:begin] + kept[end:] for begin, end in spans)
