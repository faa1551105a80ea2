"""Live clusters with their dashboards."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from web.shown_cluster import Shown, up


@contextmanager
def _up_and_shown(folder: Path, first: str = "") -> Iterator[Shown]:
    """A live cluster that is complete, with a dashboard."""
    process = up(folder, "--web", first=first)
    try:
        output = next(line for line in process.stdout if line.startswith("dashboard: "))
        port, token = output.strip().removeprefix("dashboard: http://127.0.0.1:").split("/#")
        for line in process.stdout:
            if "consumer-2" in line and "acquired" in line:
                break
        # Whoever does not read its lines would make it wait in the end.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield Shown(process, int(port), token, folder / "runs")
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def fresh(tmp_path):
    """A dashboard of a cluster of one's own."""
    with _up_and_shown(tmp_path) as shown:
        yield shown


@pytest.fixture
def patient(tmp_path):
    """The same; it gives a page ten minutes to read an answer, which is longer than any test waits."""
    with _up_and_shown(tmp_path, "from emulator.web import http\nhttp._READS_WITHIN_S = 600") as shown:
        yield shown


@pytest.fixture(scope="module")
def _one_for_all(tmp_path_factory):
    with _up_and_shown(tmp_path_factory.mktemp("shown")) as shown:
        yield shown


@pytest.fixture
def shown(_one_for_all):
    """A dashboard of a cluster that others meet, too: unhurt afterwards, or they will report."""
    yield _one_for_all
    _one_for_all.say("heal all")
