"""`emulator.watch`: a run is followed while the caller does something else."""

import pytest

import emulator
from emulator.analysis.live.changes import WatchedDifference
from emulator.analysis.live.following import WatchError
from emulator.base.errors import UserError
from emulator.trace.journal import JOURNAL
from support.growing import executed, growing
from support.waiting import until


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return executed(tmp_path_factory.mktemp("source"))


def test_a_run_is_followed_to_its_end(tmp_path, source):
    with growing(tmp_path / "run", source) as run:
        run.grow(300)
        watched = emulator.watch(run.path)
        until(lambda: sum(watched.rows.values()) == 300)
        assert not watched.ended
        until(lambda: watched.lines)
        assert {difference.what for difference in watched.differences} <= set(WatchedDifference)
        shown = str(watched)
        assert "300 rows up to " in shown
        assert "; under way\n" in shown
        assert watched.lines[-1] in shown
        run.end()
        until(lambda: watched.ended)

    watched.stop()
    assert watched.rows == source.manifest["rows"]
    assert f"{sum(source.manifest['rows'].values()):,} rows up to 70" in str(watched)
    assert watched.differences == (), "all processes have ended"
    assert "; ended" in str(watched)
    with pytest.raises(WatchError, match="has ended, there is nothing to watch: rmqemu analyze "):
        emulator.watch(run.path)


def test_who_stops_goes_on_from_his_checkpoint(tmp_path, source):
    with growing(tmp_path / "run", source) as run:
        run.grow(300)
        watched = emulator.watch(run.path, checkpoint=tmp_path / "kept")
        until(lambda: sum(watched.rows.values()) == 300)
        watched.stop()
        watched.stop()
        assert watched.ended
        run.end()
        again = emulator.watch(str(run.path), checkpoint=str(tmp_path / "kept"))
        until(lambda: again.ended)
        again.stop()

    assert again.rows == source.manifest["rows"]
    assert again.lines[0] not in watched.lines


def test_a_run_that_is_damaged_is_reported_where_it_is_shown_and_when_it_is_stopped(tmp_path, source):
    with growing(tmp_path / "run", source) as run:
        run.grow(50)
        watched = emulator.watch(run.path)
        until(lambda: sum(watched.rows.values()) == 50)
        journal = run.path / "trace" / JOURNAL
        with journal.open("ab") as file:
            file.write(b"x" * 100)
        until(lambda: watched.ended)
        assert "waiting.rows is damaged: the frame at byte " in str(watched)
        with pytest.raises(UserError, match="is damaged"):
            watched.stop()
