"""A pytest plugin: how long each folder of tests took, at the end of a run with `--times`.

The seconds of a folder are those of its tests and their fixtures, added up over all workers: several
pass at the same time, so their sum is more than the clock shows.
"""

from collections import Counter
from time import perf_counter

import attrs
import pytest

FILES_SHOWN = 10
"""As many files as are worth a place in `support.kinds.FIRST`."""


@attrs.define(eq=False)  # plugins are keys
class Times:
    """Seconds of a run, as its reports arrive."""

    _start: float = attrs.field(factory=perf_counter)
    _first_test: float | None = None
    """When the first report came: all before is start-up and collection."""
    by_file: Counter[str] = attrs.field(factory=Counter)
    tests: Counter[str] = attrs.field(factory=Counter)
    """Mapping folder -> tests that ran."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._first_test is None:
            self._first_test = perf_counter() - report.duration
        file = report.nodeid.partition("::")[0]
        self.by_file[file] += report.duration
        self.tests[folder_of(file)] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("seconds")
        began, ended = self._first_test or perf_counter(), perf_counter()
        for line in table(self.by_file, self.tests):
            terminalreporter.write_line(line)
        passed = f"start and collection {began - self._start:.0f} s, tests {ended - began:.0f} s on the clock"
        terminalreporter.write_line(passed)


def folder_of(file: str) -> str:
    """`tests/rpc/test_calls.py` -> `rpc`."""
    return file.split("/")[-2] if "/" in file else file


def table(by_file: Counter[str], tests: Counter[str]) -> list[str]:
    """The lines of the summary: folders and the longest files, each from the longest to the shortest."""
    by_folder: Counter[str] = Counter()
    for file, seconds in by_file.items():
        by_folder[folder_of(file)] += seconds
    folders = [f"{seconds:8.1f}  {tests[name]:6,} tests  {name}" for name, seconds in by_folder.most_common()]
    files = [f"{seconds:8.1f}  {name}" for name, seconds in by_file.most_common(FILES_SHOWN)]
    return ["by folder", *folders, "the longest files", *files]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", action="store_true", help="print how long each folder of tests took")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.times and not hasattr(config, "workerinput"):  # a worker prints nothing
        config.pluginmanager.register(Times())
