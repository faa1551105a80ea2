"""The line that shows how far Spark is."""

import io
import re

import pytest
from rich.console import Console

from emulator.dataset.progress import TasksDone, spark_progress, tasks_of
from support.waiting import until


@pytest.mark.parametrize(
    ("stages", "text"),
    [([], ""), ([(0, 0)], ""), ([(3, 8)], "3 of 8 tasks"), ([(3, 8), (1_000, 2_000)], "1,003 of 2,008 tasks")],
)
def test_the_tasks_of_all_running_stages_are_counted(stages, text):
    assert tasks_of(iter(stages)).text == text


def waits_for(path):
    """A task that lasts until a file is there."""

    def wait(batches):
        import time

        while not path.exists():
            time.sleep(0.01)
        yield from batches

    return wait


def test_a_terminal_shows_the_tasks_while_a_job_runs(spark, tmp_path):
    shown, go_on = io.StringIO(), tmp_path / "go on"
    with spark_progress(spark, "sweeping", Console(file=shown, force_terminal=True, width=80)) as progress:

        def is_shown():
            if re.search(r"sweeping, 0 of 3 tasks", shown.getvalue()):
                go_on.touch()
            return go_on.exists()

        import threading

        waiting = threading.Thread(target=until, args=(is_shown,))
        waiting.start()
        assert spark.range(0, 3, 1, 3).mapInArrow(waits_for(go_on), "id long").count() == 3
        waiting.join()
        progress.step("judging")

    assert "judging" in shown.getvalue()


def test_what_is_no_terminal_shows_nothing(spark):
    shown = io.StringIO()
    with spark_progress(spark, "sweeping", Console(file=shown)) as progress:
        progress.on_tasks(TasksDone(1, 2))
        progress.step("judging")

    assert shown.getvalue() == ""
