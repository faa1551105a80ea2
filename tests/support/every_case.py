"""Tables of cases as one test: hundreds of cases of a millisecond each would cost every worker seconds to collect."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def holds_for_each(check: Callable[[T], object], cases: Iterable[T], name: Callable[[T], object] = repr) -> None:
    """Call a check with each case, and report all cases that fail at once, each with its traceback.

    Args:
        check: raises where a case fails.
        cases: the table; a test of an empty one would show nothing.
        name: what a case is called in the report.

    Raises:
        ExceptionGroup: some cases fail.
    """
    failures, checked = [], 0
    for case in cases:
        checked += 1
        try:
            check(case)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one case, the others are checked, too
            error.add_note(f"case {name(case)}")
            failures.append(error)
    assert checked, "there are no cases"
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {checked} cases fail", failures)
