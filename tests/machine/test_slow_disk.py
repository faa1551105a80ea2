"""A slow disk and one that lies about syncs, against a disk that does one flush after the other."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.base.hits import Hits
from emulator.machine.disk import EmulatedDisk
from emulator.time.timeline import Timeline

MS = 1_000_000


class Machine:
    """A disk, and the time that passes."""

    def __init__(self):
        self.timeline = Timeline()
        self.hits = Hits()
        self.disk = EmulatedDisk(self.timeline, self.hits)

    def at_ms(self, instant_ms):
        self.timeline.now_ns = instant_ms * MS
        return self.disk


@attrs.define
class OneFlushAfterTheOther:
    """The model: writes wait in a queue; an idle disk flushes all that wait at once, and that takes its time."""

    flush_ms: int
    waiting: list[int] = attrs.Factory(list)
    under_way_until_ms: int | None = None

    def write(self, at_ms: int) -> None:
        self._pass(at_ms)
        self.waiting.append(at_ms)
        if self.under_way_until_ms is None:
            self._begin(at_ms)

    def done_ms(self) -> int:
        """When all that was written is there, if nothing more comes."""
        until = self.under_way_until_ms or 0
        return until + self.flush_ms if self.waiting else until

    def _pass(self, at_ms: int) -> None:
        while self.under_way_until_ms is not None and self.under_way_until_ms <= at_ms:
            ended, self.under_way_until_ms = self.under_way_until_ms, None
            if self.waiting:
                self._begin(ended)

    def _begin(self, at_ms: int) -> None:
        self.waiting.clear()
        self.under_way_until_ms = at_ms + self.flush_ms


@given(flush_ms=st.integers(1, 60), pauses=st.lists(st.integers(0, 90), min_size=1, max_size=40))
def test_what_is_written_during_a_flush_goes_with_the_next_one(flush_ms, pauses):
    item, model, now_ms = Machine(), OneFlushAfterTheOther(flush_ms), 0
    item.disk.slow_down("f", flush_ms)
    for pause in pauses:
        now_ms += pause
        item.at_ms(now_ms).write("a", b"")
        model.write(now_ms)
        assert item.disk.busy_ms() == model.done_ms() - now_ms
        assert flush_ms <= item.disk.busy_ms() <= 2 * flush_ms

    assert item.hits.of("f") == len(pauses)
    assert item.at_ms(now_ms + 2 * flush_ms).busy_ms() == 0


def test_a_healthy_disk_is_never_busy():
    item = Machine()
    item.disk.write("a", b"1")

    assert item.disk.busy_ms() == 0


def test_two_slow_disks_are_slower_than_one_and_each_heals_on_its_own():
    item = Machine()
    item.disk.slow_down("one", 30)
    item.disk.slow_down("other", 50)
    item.disk.write("a", b"")
    assert item.disk.busy_ms() == 80
    item.disk.heal("one")
    item.at_ms(100).write("a", b"")
    assert item.disk.busy_ms() == 50
    item.disk.heal("other")
    item.at_ms(200).write("a", b"")
    assert item.disk.busy_ms() == 0


def test_a_flush_under_way_when_the_disk_is_healed_ends_when_it_would_have():
    item = Machine()
    item.disk.slow_down("f", 100)
    item.disk.write("a", b"")
    item.at_ms(40).heal("f")
    item.disk.write("b", b"")

    assert item.disk.busy_ms() == 60


def after_power_loss(*, sync=True, healed=False, again=False):
    item = Machine()
    item.disk.write("a", b"old")
    item.disk.lie("f")
    item.disk.write("a", b"new", sync=sync)
    assert item.disk.read("a") == b"new"
    if healed:
        item.disk.heal("f")
    if again:
        item.disk.write("a", b"newest")
    item.disk.lose_power()
    return item.disk.read("a"), item.hits.of("f")


@pytest.mark.parametrize(
    ("answer", "left"),
    [({}, (b"old", 1)), ({"healed": True}, (b"new", 0)), ({"healed": True, "again": True}, (b"newest", 0))],
    ids=["it lied", "a heal before writes the cache", "a sync after the heal counts"],
)
def test_what_was_acknowledged_is_gone_if_the_disk_lied_until_the_power_went(answer, left):
    assert after_power_loss(**answer) == left


def test_a_second_liar_keeps_the_cache_from_being_written():
    item = Machine()
    item.disk.lie("one")
    item.disk.lie("other")
    item.disk.write("a", b"1")
    item.disk.heal("one")
    item.disk.lose_power()

    assert item.disk.read("a") is None
    assert (item.hits.of("one"), item.hits.of("other")) == (0, 1)


def test_a_loss_of_power_without_writes_in_the_cache_is_no_bite():
    item = Machine()
    item.disk.write("a", b"1")
    item.disk.lie("f")
    item.disk.lose_power()

    assert item.disk.read("a") == b"1"
    assert item.hits.of("f") == 0


names, contents = st.sampled_from("ab"), st.binary(min_size=1, max_size=1)
steps = st.one_of(
    st.tuples(st.just("write"), names, contents, st.booleans()),
    st.tuples(st.just("lie")),
    st.tuples(st.just("heal")),
    st.tuples(st.just("lose_power")),
)


@given(st.lists(steps, max_size=30))
def test_a_disk_is_a_cache_above_a_platter(done):
    item, read, platter, cache, lying = Machine(), {}, {}, {}, False
    for verb, *words in done:
        if verb == "write":
            name, content, sync = words
            item.disk.write(name, content, sync=sync)
            read[name] = content
            if sync:
                (cache if lying else platter)[name] = content
        elif verb == "lie":
            lying = True
            item.disk.lie("f")
        elif verb == "heal":
            item.disk.heal("f")
            platter, cache, lying = {**platter, **cache}, {}, False
        else:
            item.disk.lose_power()
            read, cache = dict(platter), {}
        assert {name: item.disk.read(name) for name in "ab"} == {name: read.get(name) for name in "ab"}
