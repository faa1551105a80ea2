"""When the nodes of a kind start: instants within a spread that the seed decides."""

from emulator.chance import named_stream

_HOSTS_APART = 6
"""Nodes of a scenario whose instants shall not move in step from seed to seed; further ones move like the first."""


def start_offsets_ms(seed: int, stream: str, count: int, spread_ms: int) -> list[int]:
    """Each node's instant, drawn for itself: from 0 to `spread_ms`, both included."""
    chance = named_stream(seed, stream)
    return [chance.randrange(spread_ms + 1) for _ in range(count)]


def even_start_offsets_ms(seed: int, stream: str, count: int, spread_ms: int, first: int) -> list[int]:
    """Instants that consecutive seeds spread evenly: 30 of them leave no gap as wide as 30 draws would.

    From one seed to the next each node moves on by a share of the spread, round and round; the shares are powers
    of a number for which points in so many dimensions stay far from each other (the generalised golden ratio).

    Args:
        first: number of the first node among those of all kinds.
    """
    shares = [_ratio() ** -(1 + (first + i) % _HOSTS_APART) for i in range(count)]
    begins = [named_stream(0, stream, str(i)).random() for i in range(count)]
    return [int((begin + seed * share) % 1 * (spread_ms + 1)) for begin, share in zip(begins, shares, strict=True)]


def _ratio() -> float:
    """The positive root of x^(d+1) = x + 1."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (_HOSTS_APART + 1))
    return root
