"""Delta debugging: the smallest list of items with which something still fails.

The algorithm ddmin of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on
Software Engineering 28 (2002): try each part of the list, then the list without each part, then smaller parts.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

Fails = Callable[[Sequence[int]], bool]
"""Whether it still fails with these items only; they are given by position, in order."""


def minimised(items: Sequence[int], fails: Fails, *, likely: Sequence[int] = (), minimum: int = 0) -> tuple[int, ...]:
    """A part of the items with which it fails, and of which no single item can be left out.

    Args:
        items: positions with all of which it fails.
        fails: is never asked about more items than there are.
        likely: the items that probably matter, the likeliest first: the first 1, 2, 4, ... of them are tried alone
            before anything else, and they are left out last.
        minimum: fewest items to keep.
    """
    retained = [*(item for item in items if item not in likely), *(item for item in items if item in likely)]

    def fails_with(some: Sequence[int]) -> bool:
        return len(some) >= minimum and fails(sorted(some))

    if retained and fails_with([]):
        return ()
    retained = next((guess for guess in _guesses(likely) if len(guess) < len(retained) and fails_with(guess)), retained)
    parts = 2
    while len(retained) > 1:
        parts = min(parts, len(retained))
        smaller = next((some for some in _candidates(retained, parts) if fails_with(some)), None)
        if smaller is not None:
            # As many parts as before, of the same size, are in a list from which one was taken.
            parts = 2 if len(smaller) <= -(-len(retained) // parts) else max(parts - 1, 2)
            retained = smaller
        elif parts == len(retained):
            break
        else:
            parts *= 2
    return tuple(sorted(retained))


def _guesses(likely: Sequence[int]) -> Iterator[list[int]]:
    size = 1
    while size < 2 * len(likely):
        yield [*likely[:size]]
        size *= 2


def _candidates(retained: list[int], parts: int) -> Iterator[list[int]]:
    """Each part alone, then the list without each part."""
    bounds = [len(retained) * number // parts for number in range(parts + 1)]
    spans = [*pairwise(bounds)]
    yield from (retained[begin:end] for begin, end in spans)
    if parts > 2:  # of two parts, each is what the other leaves
        yield from (retained[:begin] + retained[end:] for begin, end in spans)
