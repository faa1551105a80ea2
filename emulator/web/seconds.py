"""The series below the time line: what was counted in each second, thinner the longer the run lasts."""

from collections.abc import Mapping

from emulator.analysis.live.load import SecondOfLoad
from emulator.web.sections import Entries

BUCKETS_MAX = 600
"""When there are more, two become one; a screen has hardly more pixels for them."""
LAGS_MAX = 8
"""Groups and topics with a lag in one bucket; more lines would not be readable."""


class Seconds:
    """The most of each count in buckets of equal width, which doubles whenever there are too many.

    Args:
        buckets_max: even.
    """

    def __init__(self, buckets_max: int = BUCKETS_MAX) -> None:
        self._buckets_max = buckets_max
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
            entry["busiest"] = [load.maximum, f"{pair} {load.busiest.request} answered {load.busiest.answer}"]
        self._add(load.second, entry)
        while len(self.entries) > self._buckets_max:
            self.width_s *= 2
            before, self.entries = self.entries, {}
            for begin, item in before.items():
                self._add(int(begin), item)

    def _add(self, second: int, entry: Entries) -> None:
        begin = str(second - second % self.width_s)
        self.entries[begin] = _maximum(self.entries.get(begin, {}), entry) | {"width_s": self.width_s}


def _maximum(entries: Entries, other: Entries) -> Entries:
    found: Entries = {name: _max_of_each(entries.get(name, {}), other.get(name, {})) for name in ("counts", "lag")}
    busiest = [entry["busiest"] for entry in (entries, other) if "busiest" in entry]
    return {**found, "lag": _largest(found["lag"])} | ({"busiest": max(busiest)} if busiest else {})


def _max_of_each(item: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(item.get(name, 0), other.get(name, 0)) for name in sorted({**item, **other})}


def _largest(lags: Mapping[str, int]) -> dict[str, int]:
    retained = sorted(lags.items(), key=lambda entry: (-entry[1], entry[0]))[:LAGS_MAX]
    return dict(sorted(retained))
