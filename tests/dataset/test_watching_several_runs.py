"""`emulator.watch_runs`: several runs are followed by one query, over restarts and repeated batches."""

import pytest

import emulator
from emulator.analysis.live.changes import READS, LiveWatch
from emulator.analysis.live.checkpoint import CheckpointError
from emulator.base.errors import UserError
from support.growing import executed, growing
from support.waiting import until

pytest.importorskip("google.protobuf", reason="the state of Spark's Python workers needs it")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return executed(tmp_path_factory.mktemp("source"))


def lines_of(run, source, *, ended=False):
    """The lines about one run, from its rows alone, in any order."""
    watch, found = LiveWatch({}), []
    for _, table, row in run.rows[: run.written]:
        found += watch.take(table.name, row[1], row if table.name in READS else None)
    found += watch.rest(time_passes=False) if ended else ()
    return sorted(f"{run.path.name}  {item.line(source.manifest['addresses'])}" for item in found)


@pytest.mark.slow
def test_runs_are_followed_over_a_restart_and_a_repeated_batch(spark, tmp_path, source):
    at = tmp_path / "at"
    with growing(tmp_path / "runs" / "a", source) as a:
        a.grow(1_200)
        watched = emulator.watch_runs(tmp_path / "runs", checkpoint=at)
        until(lambda: sorted(watched.lines) == lines_of(a, source))
        with growing(tmp_path / "runs" / "b", source) as b:
            b.grow(900)
            until(lambda: sorted(watched.lines) == lines_of(a, source) + lines_of(b, source))
            first, shown, differing = watched.lines, str(watched), watched.differences
            watched.stop()
            watched.stop()
            last = max((at / "spark" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
            last.unlink()  # as if it had been killed before Spark noted that the batch was handed on
            (last.parent / f".{last.name}.crc").unlink()
            a.end()
            b.end()
            again = emulator.watch_runs(str(tmp_path / "runs"), checkpoint=str(at))
            assert again.differences == differing
            expected = lines_of(a, source, ended=True) + lines_of(b, source, ended=True)
            until(lambda: sorted([*first, *again.lines]) == expected)
            again.stop()

    assert shown.startswith(f"2 runs, {len(first)} changes\n")
    assert first[-1] in shown
    assert again.runs == ("a", "b")
    assert again.differences == (), "all processes have ended"


def test_what_cannot_be_followed_is_one_line(tmp_path, source):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"^no run is there; expected run directories, or folders of runs$"):
        emulator.watch_runs(tmp_path / "empty")
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="is no checkpoint of several runs: expected an empty"):
        emulator.watch_runs(source.path, checkpoint=tmp_path)
    at = tmp_path / "at"
    at.mkdir()
    (at / "reached.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"reached\.json is damaged: "):
        emulator.watch_runs(source.path, checkpoint=at)
