"""Following a run under way: each row once, also over restarts; what cannot be followed is reported."""

from contextlib import contextmanager

import pytest

from emulator.analysis.live import following
from emulator.analysis.live.changes import READS, LiveWatch
from emulator.analysis.live.checkpoint import Checkpoint, CheckpointError, RunProgress
from emulator.analysis.live.following import Following, WatchError, open_watched
from emulator.trace import segments
from emulator.trace.journal import JOURNAL
from emulator.trace.run_directory import DamagedRunError, NotARunError
from emulator.trace.schema import TraceLevel
from emulator.trace.seals import sealed, unsealed
from emulator.trace.tail import TracePlace, TraceTail
from support.growing import executed, growing
from support.waiting import until


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return executed(tmp_path_factory.mktemp("source"))


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 400)


@pytest.fixture(scope="module")
def expected(source):
    """All lines about the whole run, from its rows alone."""
    with growing(source.path.parent / "alone", source) as run:
        watch = LiveWatch({})
        found = [
            change
            for _, table, row in run.rows
            for change in watch.take(table.name, row[1], row if table.name in READS else None)
        ]
        return [change.line(source.manifest["addresses"]) for change in (*found, *watch.rest(time_passes=False))]


class Follower:
    """Follows a run, and keeps the lines."""

    def __init__(self, path, checkpoint, lines):
        run = open_watched(path)
        self.lines = lines
        self.following = Following(run, Checkpoint(checkpoint, run), self._send)

    def _send(self, changes):
        self.lines += [change.line(self.following.names) for change in changes]

    def has_read(self, rows):
        return self.following.goes_on() and sum(self.following.rows.values()) == rows


@contextmanager
def followed(path, checkpoint, lines):
    """A follower inside the `with` block."""
    item = Follower(path, checkpoint, lines)
    try:
        yield item
    finally:
        item.following.stop()


def test_each_row_is_read_once_and_each_change_reported_once_over_any_number_of_restarts(tmp_path, source, expected):
    lines = []
    with growing(tmp_path / "run", source) as run:
        for step in (0, 700, 1_500):
            run.grow(step)
            with followed(run.path, tmp_path / "checkpoint", lines) as item:
                until(lambda: item.has_read(run.written))
                run.grow(300)  # it grows, and segments close, under its eyes
                until(lambda: item.has_read(run.written))
            run.grow(40)  # and while no one looks
        run.end()
        with followed(run.path, tmp_path / "checkpoint", lines) as item:
            until(lambda: not item.following.goes_on())

    assert lines == expected
    assert item.following.rows == source.manifest["rows"]
    assert item.following.end.end_ns == source.end_ns
    again = Follower(run.path, tmp_path / "checkpoint", lines)
    assert not again.following.goes_on()
    assert lines == expected, "the end is not reported twice"
    assert again.following.rows == source.manifest["rows"]


class Killed(BaseException):
    """The process ends in the middle of its work."""


def test_rows_behind_the_checkpoint_are_reported_again_after_a_kill_and_counted_once(
    tmp_path, source, expected, monkeypatch
):
    lines = []
    checkpoint = tmp_path / "checkpoint"
    with growing(tmp_path / "run", source) as run:
        run.grow(900)
        with followed(run.path, checkpoint, lines) as item:
            until(lambda: item.has_read(run.written))
        run.end()
        reported = len(lines)
        with monkeypatch.context() as patched, followed(run.path, checkpoint, lines) as item:
            patched.setattr(Checkpoint, "save", lambda *_: (_ for _ in ()).throw(Killed))
            with pytest.raises(Killed):
                until(lambda: not item.following.goes_on())
        assert len(lines) > reported
        del lines[reported:]
        with followed(run.path, checkpoint, lines) as item:
            until(lambda: not item.following.goes_on())

    assert item.following.rows == source.manifest["rows"]
    assert lines == expected


def of_another_release(stored):
    """Stored watchers as another release would have written them."""
    head, _, state = stored.partition(b"\n")
    return sealed({**unsealed(head), "release": "0.0.1"}).encode() + b"\n" + state


class CountingTail(TraceTail):
    """Reads rows, and counts them."""

    read_again = 0

    def read(self, place, rows_max):
        found = super().read(place, rows_max)
        CountingTail.read_again += len(found[0])
        return found


def test_a_restart_goes_on_with_the_stored_watchers_unless_they_are_of_another_release_or_damaged(
    tmp_path, source, expected, monkeypatch
):
    lines = []
    checkpoint = tmp_path / "checkpoint"
    monkeypatch.setattr(following, "_STORE_EVERY_S", 0.0)
    monkeypatch.setattr(following, "TraceTail", CountingTail)
    with growing(tmp_path / "run", source) as run:
        run.grow(2_000)
        with followed(run.path, checkpoint, lines) as item:
            until(lambda: item.has_read(run.written))
        stored = (checkpoint / "watch.state").read_bytes()
        differing = item.following.differences

        def rows_read_again(content):
            (checkpoint / "watch.state").write_bytes(content)
            CountingTail.read_again = 0
            again = Follower(run.path, checkpoint, [])
            again.following.stop()
            assert again.following.differences == differing
            assert sum(again.following.rows.values()) == run.written
            return CountingTail.read_again

        assert rows_read_again(stored) == 1
        assert rows_read_again(of_another_release(stored)) == run.written
        assert rows_read_again(stored[:-1]) == run.written
        assert rows_read_again(b"") == run.written
        (checkpoint / "watch.state").write_bytes(stored)
        run.end()
        with followed(run.path, checkpoint, lines) as item:
            until(lambda: not item.following.goes_on())
    assert lines == expected


def test_rows_that_the_level_leaves_out_are_no_gap(tmp_path):
    source = executed(tmp_path / "executed", TraceLevel.FINDINGS)
    with growing(tmp_path / "run", source) as run:
        run.grow(500)
        with followed(run.path, tmp_path / "checkpoint", []) as item:
            until(lambda: item.has_read(run.written))
            run.end()
            until(lambda: not item.following.goes_on())

    assert item.following.rows == source.manifest["rows"]
    assert item.following.rows["counts"] > 0


def test_the_last_instant_is_reported_when_time_stands_still(tmp_path, source, expected):
    lines = []
    with growing(tmp_path / "run", source) as run:
        first = next(place for place, (_, table, _) in enumerate(run.rows) if table.name == "ownership")
        run.grow(first)
        with followed(run.path, tmp_path / "checkpoint", lines) as item:
            until(lambda: item.has_read(run.written))
            run.grow(1)
            until(lambda: item.has_read(run.written) and lines and lines[-1].endswith("now consumer-1"))

    assert lines == expected[: len(lines)]


def test_rows_that_are_yet_to_be_read_are_no_silence(tmp_path, source, expected, monkeypatch):
    monkeypatch.setattr(following, "_RESTS_AFTER_S", 0.0)
    monkeypatch.setattr(following, "_ROWS_MAX", 10)
    lines = []
    with growing(tmp_path / "run", source, mode="live") as run:
        stored = [number for number, row in enumerate(run.rows, 1) if "stored" in row.row and row.row[1] > 5e9]
        run.grow(len(run.rows))
        before, place = TraceTail(run.path).read(TracePlace(), stored[0])
        checkpoint = Checkpoint(tmp_path / "checkpoint", open_watched(run.path))
        checkpoint.claim()
        checkpoint.save(RunProgress(place, before[-1].row[1]))  # a message is on its way
        checkpoint.release()
        item = Follower(run.path, tmp_path / "checkpoint", lines)
        assert item.following.goes_on(), "the rest of the rows is there"
        run.end()
        until(lambda: not item.following.goes_on())

    assert lines == expected[-len(lines) :]
    assert float(lines[0].split()[0]) > 5


def test_a_run_that_is_damaged_meanwhile_ends_the_watch_with_what_is_damaged(tmp_path, source):
    with growing(tmp_path / "run", source) as run:
        run.grow(100)
        journal = run.path / "trace" / JOURNAL
        with followed(run.path, tmp_path / "checkpoint", []) as item:
            until(lambda: item.has_read(run.written))
            at = journal.stat().st_size
            run.grow(100)
            with journal.open("r+b") as file:
                file.seek(at + 50)
                file.write(b"\xde\xad\xbe\xef")
            with pytest.raises(DamagedRunError) as reported:
                until(lambda: not item.following.goes_on())

    assert reported.value.lines == (f"{journal} is damaged: the frame at byte {at} is damaged",)


def test_a_run_that_cannot_be_followed_is_reported(tmp_path, source):
    with pytest.raises(NotARunError, match=r"is not a run: it has neither manifest\.json nor trace/index\.jsonl$"):
        open_watched(tmp_path / "nowhere", patience_s=0)
    with growing(tmp_path / "old", source, schema_version=5) as run, pytest.raises(NotARunError, match="version 5"):
        open_watched(run.path)
    with (
        growing(tmp_path / "counts", source, trace=TraceLevel.COUNTS) as run,
        pytest.raises(WatchError, match=r"level counts, without views and owners: expected findings or full$"),
    ):
        open_watched(run.path)
    with pytest.raises(WatchError) as reported:
        Follower(source.path, tmp_path / "checkpoint", [])
    assert str(reported.value) == f"{source.path} has ended, there is nothing to watch: rmqemu analyze {source.path}"
    assert not (tmp_path / "checkpoint").exists()


def test_a_run_that_begins_a_little_later_is_waited_for(tmp_path, source):
    with growing(tmp_path / "begun", source) as run:
        assert open_watched(run.path, patience_s=0).path == run.path


def test_a_checkpoint_that_is_not_that_of_the_run_is_refused_and_left_as_it_was(tmp_path, source):
    checkpoint = tmp_path / "checkpoint"

    def refused(run, why):
        before = contents()
        with pytest.raises(CheckpointError, match=why):
            Follower(run.path, checkpoint, [])
        assert contents() == before

    def contents():
        return {path.name: path.read_bytes() for path in checkpoint.iterdir() if path.is_file()}

    with growing(tmp_path / "run", source) as run:
        run.grow(300)
        with followed(run.path, checkpoint, []) as item:
            until(lambda: item.has_read(run.written))
            refused(run, "is the checkpoint of a watch that is under way$")
        with growing(tmp_path / "other", source, run_id="other") as other:
            refused(other, "is the checkpoint of another run than .*other$")
        with growing(tmp_path / "later", source) as later:  # the same scenario at another time
            later.grow(100)
            refused(later, "is the checkpoint of another run than .*later$")
        progress = checkpoint / "watch.json"
        progress.write_text(progress.read_text().replace('"rows": 3', '"rows": 2'))
        refused(run, r"watch\.json is damaged: it was changed after it was written$")
        progress.unlink()
        refused(run, "is no checkpoint: expected an empty folder, or a new one$")
