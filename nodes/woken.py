"""The result with which a waiting task is woken when there is nothing to tell it."""

from collections.abc import AsyncGenerator, Generator
from typing import TypeVar

import outcome

T = TypeVar("T")


class _Woken(outcome.Outcome[None]):
    """None, as often as it is asked for; trio would make an `outcome.Value` for each wait, which serves once."""

    __slots__ = ()

    def unwrap(self) -> None:
        return None

    def send(self, gen: Generator[T, None, object]) -> T:
        return gen.send(None)

    async def asend(self, agen: AsyncGenerator[T, None]) -> T:
        return await agen.asend(None)


WOKEN = _Woken()
"""Pass it to `trio.lowlevel.reschedule`."""
