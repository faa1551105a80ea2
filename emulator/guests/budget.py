"""What guests have in use together, against their limits."""

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from emulator.spec.model.guest_limits import GuestLimits

_STATM = Path("/proc/self/statm")
_MEMORY_CHECK_NS = 1_000_000_000
LONG_PIECE_S = 0.005
"""CPU time from which on a piece of work is long."""
_LONG_PIECE_MAX_S = 0.03
"""What a long piece counts at most: one alone may have been that of an import, or of the garbage collector."""
_LONG_S = 0.05
"""CPU time of long pieces from which on a connection is heavy."""
_LONG_SHARE = 0.02
"""What is forgiven of it: a connection is heavy for seconds after the latest long piece."""


class Holder(Protocol):
    """A connection that holds bytes of a pool."""

    def close_over_limit(self, detail: str) -> None:
        """Close it: it holds the most of a pool that is empty."""


class BytePool:
    """Bytes that connections hold together.

    Args:
        bytes_max: limit for all of them.
        what: the bytes, for people.
    """

    def __init__(self, bytes_max: int, subject: str) -> None:
        self._bytes_max = bytes_max
        self._what = subject
        self._held: dict[Holder, int] = {}
        self.total_bytes = 0
        """Bytes that are held now."""

    def hold(self, holder: Holder, held_bytes: int) -> None:
        """Note what a connection holds now; beyond the limit the one that holds the most is closed."""
        if not held_bytes and holder not in self._held:
            return
        self.total_bytes += held_bytes - self._held.pop(holder, 0)
        if held_bytes:
            self._held[holder] = held_bytes
        while self.total_bytes > self._bytes_max:
            largest = max(self._held, key=self._held.__getitem__)
            maximum = self._held.pop(largest)
            self.total_bytes -= maximum
            largest.close_over_limit(
                f"closed: guests hold more than {self._bytes_max} bytes of {self._what}, and this one {maximum} of them"
            )


class CpuAccount:
    """The CPU time that one connection has taken beyond its share.

    Guests live in real time, and so does this account.

    Args:
        share: of a core that it may take, above 0 and at most 1.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._owed_s = 0.0
        self._as_of_s = time.perf_counter()

    def charge(self, began_s: float) -> None:
        """Note that work for the connection began at this reading of `time.perf_counter`, and ends now."""
        self.charge_span(began_s, time.perf_counter())

    def charge_span(self, began_s: float, ended_s: float) -> None:
        """Note work between two readings."""
        self._owed_s = self.owed_s(began_s) + (ended_s - began_s) * (1 - self._share)
        self._as_of_s = ended_s

    def forgive(self) -> None:
        """No one else needs the time."""
        self._owed_s = 0.0

    def owes_more_than(self, limit_s: float) -> bool:
        """Whether it has taken more of others' time than that, and not given it back."""
        # What it owes falls until it is charged again: if it did not exceed the limit then, no clock need be read.
        return self._owed_s > limit_s and self.owed_s(time.perf_counter()) > limit_s

    def owed_s(self, now_s: float) -> float:
        """Seconds of others' time that it has taken and not given back, at a reading of `time.perf_counter`."""
        owed_s = self._owed_s
        if now_s > self._as_of_s:
            owed_s -= (now_s - self._as_of_s) * self._share
        return owed_s if owed_s > 0 else 0.0


class ConnectionCpu(CpuAccount):
    """The account of a connection that is heavy if its pieces of work take long.

    Args:
        share: of a core that it may take.
        of_heavy: the account that all heavy connections share.
        on_charged: called with the time that each piece of work took, in seconds.
    """

    def __init__(self, share: float, of_heavy: CpuAccount, on_charged: Callable[[float], None] | None = None) -> None:
        super().__init__(share)
        self._of_heavy = of_heavy
        self._on_charged = on_charged
        self._long = CpuAccount(_LONG_SHARE)

    @property
    def is_heavy(self) -> bool:
        """Whether its pieces of work have taken long."""
        return self._long.owes_more_than(_LONG_S)

    def charge_span(self, began_s: float, ended_s: float) -> None:
        """Note work between two readings."""
        super().charge_span(began_s, ended_s)
        took_s = ended_s - began_s
        if took_s > LONG_PIECE_S:
            self._long.charge_span(max(began_s, ended_s - _LONG_PIECE_MAX_S), ended_s)
        if took_s > LONG_PIECE_S or self.is_heavy:
            self._of_heavy.charge_span(began_s, ended_s)
        if self._on_charged is not None:
            self._on_charged(took_s)


class GuestBudget:
    """The limits of all guests of a cluster, and what they use."""

    def __init__(self, limits: GuestLimits) -> None:
        self.limits = limits
        self.unfinished = BytePool(limits.unfinished_bytes, "unfinished frames")
        self.unsent = BytePool(limits.all_unsent_bytes, "frames that they do not read")
        self._check_due_ns = 0
        self._memory_bytes = 0

    def refusal(self, now_ns: int) -> str | None:
        """Why no request of a guest is served now; None: they are served.

        Args:
            now_ns: the memory is looked at once a second.
        """
        if now_ns >= self._check_due_ns:
            self._check_due_ns = now_ns + _MEMORY_CHECK_NS
            self._memory_bytes = memory_in_use()
        if self._memory_bytes <= self.limits.memory_bytes:
            return None
        return (
            f"the emulator uses {self._memory_bytes} bytes of memory; "
            f"with more than {self.limits.memory_bytes} (guest_limits.memory_bytes) it serves no guest"
        )


def memory_in_use() -> int:
    """Bytes of memory of this process; where the system does not report, the most that it ever had."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
