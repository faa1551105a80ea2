"""A stream that is killed with all its processes, and started again: each change is written once."""

import os
import signal
import subprocess
import sys

import attrs
import pytest

from emulator.analysis.live.changes import READS, LiveWatch
from emulator.trace import segments
from support.growing import executed, growing
from support.waiting import until

pytest.importorskip("google.protobuf", reason="the state of Spark's Python workers needs it")


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 400)


def changes_of(rows):
    watch = LiveWatch({})
    found = []
    for _, table, row in rows:
        found += watch.take(table.name, row[1], row if table.name in READS else None)
    return sorted(map(attrs.astuple, [*found, *watch.rest(time_passes=False)]))


def numbers(folder):
    """The batches of which there is a file in a log of Spark."""
    return {int(name) for path in folder.glob("[0-9]*") if (name := path.name.removesuffix(".compact")).isdigit()}


class Stream:
    """The query in a process of its own, as often as it is started."""

    def __init__(self, runs, folder):
        self.runs = runs
        self.folder = folder
        self.changes = folder / "changes"

    def start(self, once):
        words = (self.runs, self.folder, 500, once)
        command = [sys.executable, "-m", "support.differences_in_a_process", *map(str, words)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with (self.folder / "output").open("ab") as output:
            return subprocess.Popen(
                command, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def kill_when(self, reached):
        """Start it, and kill it, its JVM and its Python workers when something is so."""
        process = self.start("on")
        try:
            until(lambda: reached() or process.poll() is not None)
            assert process.poll() is None, (self.folder / "output").read_text()
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def finish(self):
        assert self.start("once").wait() == 0, (self.folder / "output").read_text()

    def planned(self):
        """Batches that have begun."""
        return numbers(self.folder / "checkpoint" / "offsets")

    def written(self):
        """Batches whose changes are in the sink."""
        return numbers(self.changes / "_spark_metadata")

    def committed(self):
        """Batches that Spark knows to be over."""
        return numbers(self.folder / "checkpoint" / "commits")


@pytest.mark.slow
def test_a_stream_that_is_killed_twice_writes_each_change_once(spark, tmp_path):
    source = executed(tmp_path / "source")
    runs = tmp_path / "runs"
    with growing(runs / "a", source) as a, growing(runs / "b", source) as b:
        stream = Stream(runs, tmp_path)
        a.grow(1_200)
        b.grow(700)
        stream.kill_when(lambda: len(stream.planned()) >= 3)
        begun = stream.planned() - stream.committed()
        a.grow(1_000)
        b.grow(900)
        stream.kill_when(lambda: len(stream.written()) >= 4)
        a.end()
        b.end()
        stream.finish()

    assert begun, "a batch was under way"
    found = spark.read.parquet(str(stream.changes)).drop("share", "number").collect()
    expected = changes_of(a.rows)
    for run in ("a", "b"):
        assert sorted(tuple(row)[1:] for row in found if row.run == run) == expected
    assert len(expected) > 10
