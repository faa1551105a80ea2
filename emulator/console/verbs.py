"""The table of all verbs, and the verbs about the run itself: `help`, `save`, `quit`."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs
import tomli_w

from emulator.console.breaking import BREAKING
from emulator.console.load import LOAD
from emulator.console.looking import ASKING, LOOKING
from emulator.console.scripts import SCRIPTING
from emulator.console.session import Session
from emulator.console.timing import TIMING
from emulator.console.verb import Lines, Verb, VerbError, Words, no_such_verb
from emulator.spec import Scenario, to_dict
from emulator.spec.model.bounds import by_hand_name
from emulator.trace.files import RunFiles, put_in_place
from faults.plan import Plan, PlanError
from nodes.fields import shown

SAVE = "save"
_HEAD = """\
# What was done interactively, at the instants at which it was done. A run of this in `sim` or `fast` gives the same
# changes of views in the same order, with the same timers, as long as nothing was lost at random: which frame a
# loss takes depends on how many went before it, and what passes next to the network in `live` takes time of its own.

"""


def scenario_by_hand(scenario: Scenario, by_hand: Plan, end_ms: int) -> str:
    """The text of a scenario file that repeats a run with the faults that were begun interactively.

    Args:
        scenario: of the run; those of its faults that have begun are included.
        by_hand: faults begun interactively.
        end_ms: end of the run, in ms since it began.

    Raises:
        PlanError: two faults have one id.
    """
    planned = (timed for timed in scenario.faults.faults if timed.at_ms < end_ms)
    faults = Plan((*planned, *by_hand.faults))
    # A scenario must end after the begin of its last fault.
    run_for_ms = max([1, end_ms, *(timed.at_ms + 1 for timed in faults.faults)])
    replay = attrs.evolve(scenario, name=by_hand_name(scenario.name), run_for_ms=run_for_ms, faults=faults)
    return _HEAD + tomli_w.dumps(to_dict(replay))


async def _save(session: Session, words: Words) -> Lines:
    try:
        content = scenario_by_hand(session.cluster.scenario, session.by_hand(), session.now_ms)
        path = session.file(words[0], to_write=True)
        put_in_place(RunFiles(), path, content.encode())
    except OSError as error:
        raise VerbError(f"{shown(words[0])}: {error.strerror}") from None
    except PlanError as error:
        raise VerbError(str(error)) from None
    return (f"saved; do it again with: rmqemu run {path}",)


async def _help(_session: Session, words: Words) -> Lines:
    if words and words[0] not in VERBS:
        raise VerbError(no_such_verb(words[0], tuple(VERBS)))
    return help_lines((VERBS[words[0]],) if words else tuple(VERBS.values()))


def help_lines(verbs: tuple[Verb[Session], ...]) -> Lines:
    """Two lines for each verb: its usage, and what it does."""
    return tuple(line for verb in verbs for line in (verb.line(), f"    {verb.summary}"))


async def _quit(session: Session, _words: Words) -> Lines:
    session.leaving.set()
    return ("leaving: every fault heals",)


_ALL = (
    *LOOKING,
    *LOAD,
    *ASKING,
    *BREAKING,
    *TIMING,
    *SCRIPTING,
    Verb(SAVE, "FILE", "save the faults begun interactively so far as a scenario that repeats them", _save, 1, 1),
    Verb("help", "[VERB]", "list all verbs, or explain one", _help, 0, 1),
    Verb("quit", "", "end the run", _quit),
)
VERBS: Mapping[str, Verb[Session]] = MappingProxyType({verb.name: verb for verb in _ALL})
"""Mapping name -> verb, in the order of `help`."""
