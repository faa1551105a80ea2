"""How many of one unit of time are in another."""

from typing import Final

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000
MS_PER_S: Final = 1_000
