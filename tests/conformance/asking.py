"""Put a question to an answerer, and compare all of its answer with that of the real class.

An answerer is a function of the case's `in` that returns what the case calls
`out`. Where the real class threw, it returns `{"error": kind}`; a message is
compared only if the answerer reports one, for a text of ours seldom is Java's.
"""

from collections.abc import Callable, Iterator
from typing import Any

from conformance.vectors import Question

Json = Any
Answerer = Callable[[dict[str, Json]], Json]
UNSTABLE = ("<now>", "<process counter>")
"""What a case writes in place of a value that no second run would give."""
_MISSING = object()


def ask(question: Question, answerer: Answerer, normal: Callable[[Json], Json] = lambda out: out) -> None:
    """Compare an answer.

    Args:
        question: what is asked, and the expected answer.
        answerer: who is asked.
        normal: what makes two answers alike that say the same; applied to both.

    Raises:
        AssertionError: it differs; says where in the answer, what was expected and what came.
    """
    differences = [*_differences("out", normal(question.out), normal(answerer(question.requested)))]
    if differences:
        raise AssertionError("\n  ".join([f"{question}: {question.requested.get('op', 'asked')}", *differences]))


def _differences(place: str, expected: Json, got: Json) -> Iterator[str]:
    """Each at the innermost place where values differ; nothing counts as something else, null not as absent."""
    if isinstance(expected, str) and expected in UNSTABLE and got is not _MISSING:
        return
    if isinstance(expected, dict) and isinstance(got, dict):
        if "error" in expected and "error" in got and "message" not in got:
            expected = {key: value for key, value in expected.items() if key != "message"}
        for key in [*expected, *(key for key in got if key not in expected)]:
            yield from _differences(f"{place}.{key}", expected.get(key, _MISSING), got.get(key, _MISSING))
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for number, (item, ours) in enumerate(zip(expected, got, strict=True)):
            yield from _differences(f"{place}[{number}]", item, ours)
    elif expected != got or isinstance(expected, bool) != isinstance(got, bool):
        yield f"{place}: expected {_shown(expected)}, got {_shown(got)}"


def _shown(value: Json) -> str:
    return "nothing" if value is _MISSING else repr(value)
