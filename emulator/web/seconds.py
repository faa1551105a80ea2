"""The series below the time line: what was counted in each second, thinner the longer the run lasts."""

from collections.abc import Mapping

from emulator.analysis.live.load import SecondOfLoad
from emulator.web.sections import Entries

BUCKETS_MOST = 600
"""When there are more, two become one; a screen has hardly more pixels for them."""
LAGS_MOST = 8
"""Groups and topics with a lag in one bucket; more lines would not be readable."""


class Seconds:
    """The most of each count in buckets of equal width, which doubles whenever there are too many.

    Args:
        buckets_most: even.
    """

    def __init__(self, buckets_most: int = BUCKETS_MOST) -> None:
        self._buckets_most = buckets_most
        self.width_s = 1
        self.entries: Entries = {}
        """Mapping begin of the bucket in seconds -> its width and the most of each count."""

    def note(self, load: SecondOfLoad, trouble: Mapping[str, int]) -> None:
        """Add a second; seconds come in order.

        Args:
            load: of the second.
            trouble: further counts of it.
        """
        entry: Entries = {"width_s": self.width_s, "counts": {**load.counts, **trouble}}
        entry["lag"] = _largest({f"{group}/{topic}": waiting for (group, topic), waiting in load.lag.items()})
        if load.busiest is not None:
            pair = f"{load.busiest.client} -> {load.busiest.server}"
            entry["busiest"] = [load.most, f"{pair} {load.busiest.request} answered {load.busiest.answer}"]
        self._add(load.second, entry)
        while len(self.entries) > self._buckets_most:
            self.width_s *= 2
            before, self.entries = self.entries, {}
            for begin, one in before.items():
                self._add(int(begin), one)

    def _add(self, second: int, entry: Entries) -> None:
        begin = str(second - second % self.width_s)
        self.entries[begin] = _most(self.entries.get(begin, {}), entry) | {"width_s": self.width_s}


def _most(one: Entries, other: Entries) -> Entries:
    found: Entries = {name: _most_of_each(one.get(name, {}), other.get(name, {})) for name in ("counts", "lag")}
    busiest = [entry["busiest"] for entry in (one, other) if "busiest" in entry]
    return {**found, "lag": _largest(found["lag"])} | ({"busiest": max(busiest)} if busiest else {})


def _most_of_each(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in sorted({**one, **other})}


def _largest(lags: Mapping[str, int]) -> dict[str, int]:
    kept = sorted(lags.items(), key=lambda entry: (-entry[1], entry[0]))[:LAGS_MOST]
    return dict(sorted(kept))
