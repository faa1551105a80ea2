"""Tables of cases as one test: hundreds of cases of a millisecond each would cost every worker seconds to collect."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Ids = Callable[[Any], object] | Iterable[object] | None


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


def each_case(
    names: str | Sequence[str], cases: Iterable[Any], ids: Ids = None
) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but all cases are one test.

    For quick cases that leave nothing behind: they share the fixtures of the test.

    Args:
        names: of the arguments that a case has.
        cases: tuples with a value for each, or just values where there is one name.
        ids: what cases are called in the report: a text for each, or what makes one of a value; None: their values.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [tuple(case) if len(arguments) > 1 else (case,) for case in cases]
    called = _names(table, ids)

    def decorate(function: Callable[..., object]) -> Callable[..., None]:
        @functools.wraps(function)
        def all_cases(**fixtures: Any) -> None:
            def check(number: int) -> None:
                function(**dict(zip(arguments, table[number], strict=True)), **fixtures)

            holds_for_each(check, range(len(table)), called.__getitem__)

        signature = inspect.signature(function)
        fixtures = [parameter for parameter in signature.parameters.values() if parameter.name not in arguments]
        # pytest reads the signature for the fixtures of a test, and a test returns nothing.
        all_cases.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return all_cases

    return decorate


def _names(table: list[tuple[Any, ...]], ids: Ids) -> list[str]:
    if ids is None:
        return [", ".join(f"{value!r:.200}" for value in case) for case in table]
    if callable(ids):
        return [", ".join(str(ids(value)) for value in case) for case in table]
    return list(map(str, ids))
