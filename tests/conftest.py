"""What all tests share: a trap mark that means nothing is refused before any test runs."""

import pytest

from emulator.fidelity_scan import MarkError, read_mark


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("trap"):
            try:
                read_mark(item.nodeid, mark.args, dict(mark.kwargs))
            except MarkError as error:
                raise pytest.UsageError(str(error)) from None
