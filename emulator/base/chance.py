"""Named random streams: every stream and every draw depends on the seed and its name alone.

So one more fault, node or draw shifts no other draw.
"""

import random
from hashlib import blake2b


def named_stream(seed: int, *names: str) -> random.Random:
    """The random stream of this seed and these names."""
    return random.Random(int.from_bytes(_hash(seed, "/".join(names)).digest(), "big"))


class Draws:
    """The draws of a stream by their ordinals, each without the draws before it."""

    __slots__ = ("_hash",)

    def __init__(self, seed: int, name: str) -> None:
        self._hash = _hash(seed, f"{name}#")

    def draw(self, ordinal: int) -> float:
        """The `ordinal`-th draw, in [0, 1)."""
        whole = self._hash.copy()  # seed and name are hashed once
        whole.update(b"%d" % ordinal)
        return int.from_bytes(whole.digest(), "big") / 2.0**64


def _hash(seed: int, name: str) -> "blake2b":
    return blake2b(name.encode(), digest_size=8, key=seed.to_bytes(16, "big", signed=True))
