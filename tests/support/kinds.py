"""A pytest plugin: marks that say what a test needs, in one place, and how several workers share the files.

The fixtures of a test say that it needs Spark, a browser or a kernel; the marks of whole
folders and files stand below. With `--quick` (`make quick`) tests with such a mark are left out, and files
that have no others are not even imported.
"""

from pathlib import Path
from typing import Any

import pytest

BY_FIXTURE = {"spark": "spark", "browser": "browser", "own_jupyter": "kernel", "workshop": "clusters"}
"""A test with the fixture gets the mark."""
BY_PLACE = {
    "comparison": "clusters",
    "fault_kinds": "clusters",
    "fuzz": "clusters",
    "lake": "clusters",
    "notebook": "clusters",
    "pipeline": "clusters",
    "pop": "clusters",
    "report": "clusters",
    "scenarios": "clusters",
    "sessions": "clusters",
    "shrinking": "clusters",
    "sources": "clusters",
    "timelines_figures": "clusters",
    "verdicts": "clusters",
    "why": "clusters",
    "test_frozen_objects.py": "clusters",
    "test_garbage_of_a_long_run.py": "clusters",
    "test_levels.py": "clusters",
    "test_live_storms.py": "clusters",
    "test_load_while_a_run_goes_on.py": "clusters",
    "test_shares.py": "clusters",
    "test_watching_shares_of_a_run.py": "clusters",
    "bench_figures": "programs",
    "budgets": "programs",
    "campaign": "programs",
    "campaign_programs": "programs",
    "cli": "programs",
    "web": "programs",
    "dataset": "programs",
    "testing": "programs",
    "console": "programs",
    "test_borders_of_the_oracles.py": "programs",
    "notebooks_run": "kernel",
}
"""All tests of the folder or file get the mark, except those of `STAYS`."""
STAYS = (
    "test_membership_and_notify.py",
    "test_offsets_and_duplicates.py",
    "test_rebalance_timing.py",
    "test_rip32_takeover.py",
    "test_steady_producer.py",
)
"""Files of such folders that `make quick` runs: a whole cluster, in seconds."""
ON_ONE_WORKER = ("dataset", "pipeline")
"""Their files share one Spark, which takes longer to start, and to warm up, than most of them take."""
WITH_PROCESSES = ("test_warm_server.py",)
"""Files of such folders that start Spark in processes of their own."""
FIRST = (
    "test_warm_server.py",
    "dataset",
    "pipeline",
    "test_quoted_outputs.py",
    "test_campaigns_of_the_command.py",
    "test_landed_campaigns.py",
    "test_budgets.py",
    "test_controller_incidents.py",
    "test_hostile_directories.py",
    "test_secrets_of_commands.py",
    "test_scenarios_that_name_code.py",
    "test_unsupported_requests_of_guests.py",
    "test_without_the_extra.py",
    "test_terminals.py",
    "test_terminations.py",
    "test_pages.py",
    "test_the_end_of_a_cluster.py",
    "test_commands_with_a_cluster.py",
    "verdicts",
    "notebooks_run",
    "sources",
    "fault_kinds",
    "campaign_programs",
    "fuzz",
)
"""Folders and files that take long, as `--times` reports: begun last, they would leave the other workers idle."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out all tests with a mark of tests/support/kinds.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `--quick` a file whose tests all have a mark is not imported, which takes longer than most tests."""
    return True if config.option.quick and _mark_of_file(collection_path) else None


def _mark_of_file(path: Path) -> str | None:
    return None if path.name in STAYS else BY_PLACE.get(path.name) or BY_PLACE.get(path.parent.name)


@pytest.hookimpl(tryfirst=True)  # before -m takes tests away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen, left_out = [], []
    for item in items:
        requested = getattr(item, "fixturenames", ())
        marks = [mark for fixture, mark in BY_FIXTURE.items() if fixture in requested]
        marks += [mark for mark in (_mark_of_file(item.path),) if mark is not None]
        for mark in marks:
            item.add_marker(mark)
        is_left_out = config.option.quick and (marks or item.get_closest_marker("spark"))
        (left_out if is_left_out else chosen).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(chosen, key=_place)


def _place(item: pytest.Item) -> int:
    """The place of a test's file, or else of its folder, among those that begin first."""
    places = [FIRST.index(name) for name in (item.path.name, item.path.parent.name) if name in FIRST]
    return min(places, default=len(FIRST))


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file is run by one worker, so that what its tests share is made once; files go out in their order."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = Path(nodeid.partition("::")[0])
            shares_spark = file.parent.name in ON_ONE_WORKER and file.name not in WITH_PROCESSES
            return "Spark" if shares_spark else super()._split_scope(nodeid)

    config.option.loadscopereorder = False
    return ByFile(config, log)
