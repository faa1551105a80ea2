"""Repeating a run, on its page: each harm without each of its causes, and what ends it at which price."""

from collections.abc import Iterator
from html import escape

from emulator.analysis.findings.cause_words import what_and_when
from emulator.analysis.findings.words import amount_words
from emulator.counterfactuals.left_out import Confirmation, LeftOutOutcome
from emulator.counterfactuals.remedies import HarmRemedies, Remedies
from emulator.counterfactuals.repeated_run import RepeatedRun
from emulator.counterfactuals.words import price_words
from emulator.report.document import folded, table

_LEFT_OUT = ("harm", "with all disturbances", "left out", "without it", "with it alone", "the harm is")
_REMEDIES = ("harm", "in this run", "tried", "with it", "its price")
_NUMBERS = ("with all disturbances", "without it", "with it alone", "in this run", "with it")


def repeated_run(repeated: RepeatedRun) -> Iterator[str]:
    """The parts of the section."""
    yield "".join(f"<p>{escape(line)}</p>" for line in repeated.head())
    if repeated.confirmation is not None:
        yield table(_LEFT_OUT, _left_out_rows(repeated.confirmation), numbers=_NUMBERS)
    if repeated.remedies is not None:
        yield table(_REMEDIES, _remedy_rows(repeated.remedies), numbers=_NUMBERS)
        yield folded("what was tried and does not help", _useless(repeated.remedies))


def _left_out_rows(confirmation: Confirmation) -> Iterator[tuple[str, ...]]:
    for item in confirmation.harms:
        title, whole = escape(item.named.title), escape(amount_words(item.repeated, item.named.unit))
        for left_out in item.left_out:
            cause = escape(what_and_when(left_out.cause))
            if left_out.outcome is LeftOutOutcome.NOT_TRIED:
                yield title, whole, cause, "", "", escape(left_out.problem)
            else:
                without, alone = amount_words(left_out.without), amount_words(left_out.alone)
                yield title, whole, cause, without, alone, left_out.outcome
            title = whole = ""


def _remedy_rows(remedies: Remedies) -> Iterator[tuple[str, ...]]:
    for item in remedies.harms:
        title, before = escape(item.named.title), escape(amount_words(item.before, item.named.unit))
        for tried in item.helping:
            price = escape(price_words(tried)) or "nothing else gets worse"
            yield title, before, escape(tried.candidate.title), amount_words(tried.amount), price
            title = before = ""
        if not item.helping:
            yield title, before, "nothing that was tried helps" if item.useless else "no candidate is known", "", ""


def _useless(remedies: Remedies) -> str:
    return "".join(f"<p>{escape(item.named.title)}: {_listed(item)}</p>" for item in remedies.harms if item.useless)


def _listed(item: HarmRemedies) -> str:
    found = (f"{tried.candidate.title} ({tried.problem or amount_words(tried.amount)})" for tried in item.useless)
    return escape("; ".join(found))
