"""Verbs that keep what was done by hand."""

from pathlib import Path

import attrs
import tomli_w

from emulator.console.session import Session
from emulator.console.verb import Lines, Verb, VerbError, Words
from emulator.spec import Scenario, to_dict
from faults.plan import Plan, PlanError

_HEAD = """\
# What was done by hand, at the instants at which it was done. A run of this in `sim` or `fast` gives the same
# changes of views in the same order, with the same timers, as long as nothing was lost at random: which frame a
# loss takes depends on how many went before it, and what passes beside the network in `live` takes time of its own.

"""


def scenario_by_hand(scenario: Scenario, by_hand: Plan, end_ms: int) -> str:
    """A scenario file that does again what was done; its own faults come first, as far as they have begun.

    Raises:
        PlanError: the faults do not go together.
    """
    planned = (timed for timed in scenario.faults.faults if timed.at_ms < end_ms)
    faults = Plan((*planned, *by_hand.faults))
    # A scenario ends after its last fault has begun, if only just.
    run_for_ms = max([end_ms, *(timed.at_ms + 1 for timed in faults.faults)])
    replay = attrs.evolve(scenario, name=f"{scenario.name}-by-hand", run_for_ms=run_for_ms, faults=faults)
    return _HEAD + tomli_w.dumps(to_dict(replay))


async def _save(session: Session, words: Words) -> Lines:
    try:
        content = scenario_by_hand(session.cluster.scenario, session.by_hand(), session.now_ms)
        _write(Path(words[0]), content)
    except OSError as error:
        raise VerbError(f"{words[0]}: {error.strerror}") from None
    except PlanError as error:
        raise VerbError(str(error)) from None
    return (f"saved; do it again with: rmqemu run {words[0]}",)


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")


KEEPING = (Verb("save", "FILE", "write what was done so far as a scenario that does it again", _save, 1, 1),)
