"""`rmqemu why`: an answer, or why a run was as bad as it was, confirmed by repeating it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from emulator.analysis.judge import judge_run
from emulator.base.errors import UserError
from emulator.trace.run_directory import RunDirectory
from emulator.why.answer import answer_of_run
from emulator.why.worst import nothing_to_explain, worst_answers

if TYPE_CHECKING:
    from emulator.counterfactuals.repeated_run import RepeatRun


def why_lines(words: Sequence[str], run: RunDirectory, again: "RepeatRun | None") -> Iterator[str]:
    """The lines that the command prints.

    Args:
        words: the question; empty: what was worst.
        run: its directory.
        again: what to repeat; None: nothing.

    Raises:
        UserError: the question has no answer, or the run cannot be repeated.
    """
    if words:
        if again is not None:
            raise UserError("--verify and --remedies: expected without a question, since they are about a whole run")
        yield from answer_of_run(words, run)
        return
    report = judge_run(run)
    answers = worst_answers(report, run)
    if not answers:
        yield nothing_to_explain(report)
        return
    repeated = None if again is None else again.execute(report, run, [item.harm for item in answers])
    yield from () if repeated is None else (*repeated.head(), "")
    for place, item in enumerate(answers):
        yield from ("",) if place else ()
        yield from item.lines if again is None or not again.remedies else (*item.title, *item.answer)
        yield from () if repeated is None else (f"  {line}" for line in repeated.of_harm(item.harm))
