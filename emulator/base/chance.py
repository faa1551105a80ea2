"""Named random streams: every stream and every draw depends on the seed and its name alone.

So one more fault, node or draw shifts no other draw.
"""

import random
from hashlib import blake2b


def named_stream(seed: int, *names: str) -> random.Random:
    """The random stream of this seed and these names."""
    return random.Random(_number(seed, "/".join(names)))


def draw(seed: int, name: str, ordinal: int) -> float:
    """The `ordinal`-th draw of the stream `name`, in [0, 1), without the draws before it."""
    return _number(seed, f"{name}#{ordinal}") / 2.0**64


def _number(seed: int, name: str) -> int:
    digest = blake2b(name.encode(), digest_size=8, key=seed.to_bytes(16, "big", signed=True)).digest()
    return int.from_bytes(digest, "big")
