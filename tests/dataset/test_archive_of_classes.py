"""The archive of Spark's classes: which one belongs to which Java, and what a JVM makes of a damaged one."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from emulator.dataset import archive
from emulator.dataset.java import ensure_java, real_java


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def a_java(folder, content):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text(content)
    return folder


def test_each_java_has_an_archive_of_its_own_in_the_cache_of_the_user(cache):
    item, other = (archive.archive_path(a_java(cache / name, name)) for name in ("one", "another"))

    assert item != other
    assert item.parent == other.parent == cache / "rmqemu" / "spark"


def test_a_java_that_was_updated_has_another_archive(cache):
    home = a_java(cache / "java", "17.0.1")
    before = archive.archive_path(home)
    (home / "bin" / "java").write_text("17.0.10")

    assert archive.archive_path(home) != before


def test_without_an_archive_java_gets_no_option(cache):
    home = a_java(cache / "java", "17")
    assert archive.archive_options(home) == ()

    path = archive.archive_path(home)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"classes")
    assert archive.archive_options(home)[0] == f"-XX:SharedArchiveFile={path}"


def test_java_ignores_a_damaged_archive_and_prints_nothing_about_it(tmp_path):
    damaged = tmp_path / "damaged.jsa"
    damaged.write_bytes(b"no archive")
    command = [str(real_java(ensure_java())), *archive.use_options(damaged), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")
    assert "damaged" not in done.stderr


def test_no_archive_is_made_where_there_is_no_room(cache, monkeypatch):
    monkeypatch.setattr(archive, "ROOM_BYTES_MIN", 1 << 62)
    for name in (archive.ARCHIVE, "CI"):  # which keep it from being made, too
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(archive.ArchiveError, match=r"/rmqemu/spark has \d+ MB left: expected \d+ MB for an archive$"):
        archive.make_archive()
    archive.make_archive_later(ensure_java())
    assert [path.name for path in (cache / "rmqemu" / "spark").iterdir()] == []


def test_one_process_at_a_time_makes_an_archive(cache):
    folder = cache / "rmqemu" / "spark"
    folder.mkdir(parents=True)
    with (folder / "archive.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(archive.ArchiveError, match="another process makes an archive in"):
            archive.make_archive()


def test_archives_of_two_other_javas_stay(cache):
    folder = cache / "rmqemu" / "spark"
    folder.mkdir(parents=True)
    for age_s, name in enumerate(["own.jsa", "a.jsa", "b.jsa", "c.jsa", "c.base", "d.jsa", "d.base", "e.new"]):
        (folder / name).touch()
        os.utime(folder / name, (1_000 - age_s, 1_000 - age_s))
    archive._remove_old(folder / "own.jsa")

    assert sorted(path.name for path in folder.iterdir()) == ["a.jsa", "b.jsa", "own.jsa"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="this system has no list of mapped files")
def test_spark_starts_from_the_archive_that_was_made(cache):
    made = archive.make_archive()
    code = (
        "from pathlib import Path; from pyspark import SparkContext; from emulator.dataset.spark import spark_session\n"
        "spark_session(); print(Path(f'/proc/{SparkContext._gateway.proc.pid}/maps').read_text())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert made.stat().st_size > 50 << 20
    assert sorted(path.name for path in made.parent.iterdir()) == ["archive.lock", made.name]
    assert str(made) in done.stdout
