"""The line that says how far a long call is."""

import re

from emulator.notebook import handle
from emulator.notebook.handle import WaitingLine
from support.small_cluster import launched


def test_a_short_wait_says_nothing(capsys):
    with WaitingLine(lambda: 0.5) as line:
        line.look()
    assert capsys.readouterr() == ("", "")


def test_a_long_wait_shows_a_bar_on_stderr_and_takes_it_away(capsys, monkeypatch):
    monkeypatch.setattr(handle, "_SILENT_S", 0.0)
    with WaitingLine(lambda: 0.5) as line:
        line.look()
        shown = capsys.readouterr().err
        assert re.fullmatch("\r━+ +50% 0:00:00", shown.rstrip())
        line.look()
        assert capsys.readouterr().err == ""  # it was drawn just now
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip("\r ") == ""


def test_who_advances_for_long_sees_how_far_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(handle, "_SILENT_S", 0.0)
    with launched(tmp_path, mode="live") as cluster:
        cluster.advance(500)
    shares = [int(part.split("%")[0].split()[-1]) for part in capsys.readouterr().err.split("\r") if "%" in part]
    assert shares
    assert shares == sorted(shares)
