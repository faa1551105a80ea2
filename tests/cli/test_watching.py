"""`rmqemu watch` next to a live cluster: what it prints when something breaks, and how it ends and goes on."""

import re
import signal
import threading

import pytest

from support.growing import executed, growing
from support.rmqemu_process import manifest_of, rmqemu, started, write_small
from support.waiting import until

CALM = {"run_for_s = 70": "run_for_s = 5_000", "at_s = 20": "at_s = 2_000", "at_s = 40": "at_s = 4_000"}
"""The faults of the scenario begin after the test has ended."""
LINE = re.compile(r" *\d+\.\d{3}  (divergence|overlap|orphan|lag) +\S.*")


class Watch:
    """The command in a process of its own, and the lines that it has printed so far."""

    def __init__(self, run, folder):
        self.process = started("watch", run, "--all", "--checkpoint", "checkpoint", cwd=folder)
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def reported(self, *words, since=0):
        return [line for line in self.lines[since:] if all(word in line for word in words)]

    def end(self):
        """Its exit status, and what it said on stderr."""
        status = self.process.wait(60)
        self._reader.join()
        return status, self.process.stderr.read()


class Live:
    """A live cluster in a process of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.process = started("up", write_small(folder, **CALM), cwd=folder)
        self.run = folder / "runs" / "small-live-seed1-1"
        until((self.run / "trace" / "index.jsonl").exists)

    def say(self, *words):
        done = rmqemu("ctl", "--run", self.run, *words, cwd=self.folder)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def live(tmp_path):
    cluster = Live(tmp_path)
    yield cluster
    cluster.process.kill()
    cluster.process.communicate()


@pytest.mark.slow
def test_what_breaks_is_reported_until_ctrl_c_which_says_how_to_go_on(live, tmp_path):
    watch = Watch(live.run, tmp_path)
    until(lambda: watch.reported("orphan", "orders/broker-b/3", "ended"))
    begin = len(watch.lines)
    live.say("suspend", "consumer-1")
    until(lambda: watch.reported("lag", "g: ", "message", "most in orders/", since=begin))
    live.say("heal", "all")
    until(lambda: watch.reported("lag", "g: ended after", since=begin))
    watch.process.send_signal(signal.SIGINT)
    status, answer = watch.end()

    assert status == 130
    seen = r"interrupted at \d+\.\d+ s, [\d,]+ rows were seen"
    how = rf"rmqemu: {seen}; rmqemu watch {live.run} --checkpoint checkpoint goes on"
    assert re.fullmatch(how, answer.splitlines()[-1])
    assert "Traceback" not in answer
    assert [line for line in watch.lines if not LINE.fullmatch(line)] == []


@pytest.mark.slow
def test_a_watch_that_was_killed_goes_on_to_the_end_of_the_run_and_its_totals_are_right(live, tmp_path):
    first = Watch(live.run, tmp_path)
    until(lambda: first.reported("orphan", "orders/broker-b/3", "ended"))
    live.say("kill", "consumer-2")
    until(lambda: first.reported("orphan", "orders", "now", since=-4))
    first.process.kill()
    first.end()
    second = Watch(live.run, tmp_path)
    live.say("heal", "all")
    until(lambda: second.reported("now consumer-2"))
    live.process.send_signal(signal.SIGINT)
    status, answer = second.end()

    assert (status, "Traceback" in answer) == (0, False)
    rows = {table: number for table, number in manifest_of(live.run)["rows"].items() if number}
    tables = ", ".join(f"{number:,} {table}" for table, number in rows.items())
    assert second.lines[-1].startswith("the run was interrupted at ")
    assert second.lines[-1].endswith(f" s; {sum(rows.values()):,} rows were seen: {tables}")
    assert [line for line in (*first.lines, *second.lines[:-1]) if not LINE.fullmatch(line)] == []
    alone = rmqemu("watch", live.run, cwd=tmp_path)
    assert (alone.returncode, alone.stdout) == (2, "")
    assert alone.stderr == f"rmqemu: {live.run} has ended, there is nothing to watch: rmqemu analyze {live.run}\n"


def refused(tmp_path, *arguments):
    before = sorted(tmp_path.rglob("*"))
    done = rmqemu("watch", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert sorted(tmp_path.rglob("*")) == before
    return line


def test_what_cannot_be_watched_is_reported_in_one_line(tmp_path):
    source = executed(tmp_path / "executed")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine.txt").write_text("")
    ended = f"rmqemu: {source.path} has ended, there is nothing to watch: rmqemu analyze {source.path}"
    assert refused(tmp_path, source.path) == ended
    assert refused(tmp_path, "nowhere") == (
        "rmqemu: nowhere is not a run: it has neither manifest.json nor trace/index.jsonl"
    )
    with growing(tmp_path / "old", source, schema_version=5):
        assert refused(tmp_path, "old").startswith("rmqemu: old has trace schema version 5, this program reads ")
    with growing(tmp_path / "brief", source, trace="counts"):
        assert refused(tmp_path, "brief").endswith(
            "brief has a trace of level counts, without views and owners: expected findings or full"
        )
    with growing(tmp_path / "run", source) as run:
        run.grow(100)
        assert refused(tmp_path, "run", "--checkpoint", "folder").endswith(
            "folder is no checkpoint: expected an empty folder, or a new one"
        )
        (run.path / "trace" / "waiting.rows").write_bytes(b"x" * 100)
        assert (
            refused(tmp_path, "run")
            == f"rmqemu: {run.path}/trace/waiting.rows is damaged: the frame at byte 0 is damaged"
        )


@pytest.mark.slow
def test_a_run_that_is_damaged_while_it_is_watched_is_reported_in_one_line(tmp_path):
    with growing(tmp_path / "run", executed(tmp_path / "executed")) as run:
        run.grow(400)
        watch = Watch(run.path, tmp_path)
        until(lambda: watch.lines)
        at = (run.path / "trace" / "waiting.rows").stat().st_size
        with (run.path / "trace" / "waiting.rows").open("ab") as journal:
            journal.write(b"x" * 100)
        status, answer = watch.end()

    assert status == 2
    (line,) = [line for line in answer.splitlines() if not line.startswith("WARNING: Using incubator modules")]
    assert line == f"rmqemu: {run.path}/trace/waiting.rows is damaged: the frame at byte {at} is damaged"
