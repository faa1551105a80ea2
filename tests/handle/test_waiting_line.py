"""The line that says how far a long call is."""

import time

from small_cluster import launched

from emulator.handle import waiting
from emulator.handle.waiting import WaitingLine


def test_a_short_wait_says_nothing(capsys):
    with WaitingLine(lambda: 0.5) as line:
        line.look()
    assert capsys.readouterr() == ("", "")


def test_a_long_wait_shows_a_bar_on_stderr_and_takes_it_away(capsys):
    line = WaitingLine(lambda: 0.5)
    line._begin_s = time.monotonic() - 3
    with line:
        line.look()
        assert " 50%    3 s" in capsys.readouterr().err
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip("\r ") == ""


def test_who_advances_for_long_sees_how_far_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(waiting, "_SILENT_S", 0.0)
    with launched(tmp_path, mode="live") as cluster:
        cluster.advance(500)
    shares = [part.split("%")[0] for part in capsys.readouterr().err.split("\r") if "%" in part]
    assert shares
    assert shares == sorted(shares)
