"""A pytest plugin: marks that say what a test needs, in one place, and how several workers share the files.

The fixtures of a test say that it needs Spark, a browser or a kernel; the marks of whole
folders stand below. `make quick` leaves out the tests with such a mark.
"""

from typing import Any

import pytest

BY_FIXTURE = {"spark": "spark", "browser": "browser", "own_jupyter": "kernel", "workshop": "clusters"}
"""A test with the fixture gets the mark."""
BY_FOLDER = {
    "fault_kinds": "clusters",
    "verdicts": "clusters",
    "fuzz": "clusters",
    "sources": "clusters",
    "timelines_figures": "clusters",
    "bench_figures": "programs",
    "campaign_programs": "programs",
    "cli": "programs",
    "web": "programs",
    "testing": "programs",
    "console": "programs",
}
"""All tests of the folder get the mark."""
ON_ONE_WORKER = "tests/dataset/"
"""They share one Spark, which takes longer to start than most of them take."""
FIRST = ("dataset", "verdicts", "notebooks_run", "sources", "fault_kinds")
"""Folders that take long: begun last, they would keep one worker busy after the others."""


@pytest.hookimpl(tryfirst=True)  # before -m takes tests away
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        requested = getattr(item, "fixturenames", ())
        marks = [mark for fixture, mark in BY_FIXTURE.items() if fixture in requested]
        for mark in (*marks, BY_FOLDER.get(item.path.parent.name)):
            if mark is not None:
                item.add_marker(mark)
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    folder = item.path.parent.name
    return FIRST.index(folder) if folder in FIRST else len(FIRST)


@pytest.hookimpl(optionalhook=True)  # without pytest-xdist there is no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file is run by one worker, so that what its tests share is made once; files go out in their order."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return ON_ONE_WORKER if nodeid.startswith(ON_ONE_WORKER) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False
    return ByFile(config, log)
