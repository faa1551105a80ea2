"""What repeating a run has shown, in lines of text."""

from collections.abc import Iterator

from emulator.analysis.findings.cause_words import what_and_when
from emulator.analysis.findings.words import amount_words
from emulator.counterfactuals.left_out import Confirmation, ConfirmedHarm, LeftOut, LeftOutOutcome
from emulator.counterfactuals.remedies import HarmRemedies, Price, Remedies, Tried
from emulator.time.mode import TimeMode

_OFF_MAX = 0.1
_ENOUGH_FROM = 0.1
"""A cause that alone makes less of a harm is not enough for it."""


def repetition_lines(confirmation: Confirmation) -> Iterator[str]:
    """How far the repetition equals the run: what must be known before any of its figures is believed."""
    repetition = confirmation.repetition
    yield f"repeated {confirmation.repetitions} times, in sim: {_likeness(confirmation)}"
    yield from (f"  not repeated: {line}" for line in repetition.missing)
    for item in confirmation.harms:
        if not _is_near(item):
            named = item.named
            in_run = f"{amount_words(named.amount)} in the run"
            yield f"  {named.title}: {amount_words(item.repeated, named.unit)} in the repetition, {in_run}"


def _likeness(confirmation: Confirmation) -> str:
    repetition = confirmation.repetition
    if confirmation.problem:
        return f"the run could not be repeated: {confirmation.problem}"
    if confirmation.is_same:
        return "the repetition has the same trace, row for row"
    near = sum(map(_is_near, confirmation.harms))
    text = f"{near} of {len(confirmation.harms)} harms are within a tenth of those of the run"
    if repetition.mode is not TimeMode.SIM:
        return f"the run was {repetition.mode}, so the repetition is not the same; {text}"
    if not repetition.digest:
        return f"the run did not come to its end, and is repeated up to there; {text}"
    return f"the repetition has another trace, as with another version of the emulator; {text}"


def _is_near(item: ConfirmedHarm) -> bool:
    amount = item.named.amount
    return abs(item.repeated - amount) <= _OFF_MAX * max(amount, item.repeated)


def confirmed_lines(item: ConfirmedHarm) -> Iterator[str]:
    """What became of a harm without each cause."""
    if not item.left_out:
        yield "nothing was left out, since no disturbance is named as a cause"
        return
    whole = f"{amount_words(item.repeated, item.named.unit)} with all disturbances"
    yield f"left out one at a time: {whole}, {amount_words(item.undisturbed)} without any"
    yield from (f"  {_left_out(left_out, item)}" for left_out in item.left_out)


def _left_out(left_out: LeftOut, item: ConfirmedHarm) -> str:
    text = what_and_when(left_out.cause)
    if left_out.outcome is LeftOutOutcome.NOT_TRIED:
        return f"{text} was not left out: {left_out.problem}"
    without = f"without {text}: {amount_words(left_out.without)}, {left_out.outcome}"
    alone = f"with it alone: {amount_words(left_out.alone)}"
    is_enough = left_out.alone - item.undisturbed >= _ENOUGH_FROM * (item.repeated - item.undisturbed)
    return f"{without}; {alone}" if is_enough else f"{without}; {alone}, so it needs others"


def remedies_lines(remedies: Remedies) -> Iterator[str]:
    """How many remedies were tried."""
    if remedies.problem:
        yield f"no remedy was tried: the run could not be repeated: {remedies.problem}"
    else:
        yield f"remedies: {remedies.repetitions - 1} were tried on this run"


def remedy_lines(item: HarmRemedies) -> Iterator[str]:
    """What was tried against a harm: what helps, with its price, and what does not."""
    if not item.helping:
        yield "what ends it: nothing that was tried" if item.useless else "what ends it: no candidate is known"
    else:
        yield "what ends it, tried on this run"
        yield from (f"  {_helping(attempt, item)}" for attempt in item.helping)
    if useless := "; ".join(map(_useless, item.useless)):
        yield f"  no help: {useless}"


def _helping(tried: Tried, item: HarmRemedies) -> str:
    price = price_words(tried)
    amount = amount_words(tried.amount, item.named.unit)
    text = f"{tried.candidate.title}: {amount} for {amount_words(item.before)}"
    return f"{text}; its price: {price}" if price else f"{text}; nothing else gets worse"


def _useless(tried: Tried) -> str:
    return f"{tried.candidate.title} ({tried.problem or amount_words(tried.amount)})"


def price_words(tried: Tried) -> str:
    """What a remedy makes worse; empty: nothing."""
    return ", ".join(map(_price, tried.prices))


def _price(price: Price) -> str:
    kind, subject = price.harm
    of = f" of {subject}" if subject else ""
    return f"{kind}{of} {amount_words(price.amount, price.unit)} for {amount_words(price.before)}"
